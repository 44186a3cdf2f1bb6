import APNsSimulator
import Foundation
import TestSupport
import Testing

/// Plans that need signatures, from the command line. Root speaks for whoever called `sudo`, unless the kernel knows
/// who signed in.
@Suite(.ownThread, .timeLimit(.minutes(10)), .enabled(if: getuid() == 0 && !isSignedIn))
struct `The approval commands` {
    private let place: Installation

    init() throws {
        place = try Installation(devices: 6)
        try place.configure(
            more: """
                approvals:
                  rules: [{above: 5, needs: 2}]
                  ceiling: 7
                  break_glass: true
                  break_glass_by: [dora]
                people:
                  anna: ["os:anna", "os:anna-admin"]
                  ben: ["os:ben"]
                  dora: ["os:dora"]
                """)
        try place.importDevices()
    }

    private func fanfare(_ words: [String], as user: String) throws -> Program.Result {
        try Program.run(words, in: place.folder, environment: ["SUDO_USER": user])
    }

    private func send(as user: String, _ more: String...) throws -> Program.Result {
        try fanfare(["run", "new-podcast", "--yes"] + Installation.words + more, as: user)
    }

    /// The hash that the refused run names.
    private func asked() throws -> String {
        let refused = try send(as: "carl")
        #expect(refused.status == 3, "\(refused.errors)")
        return try #require(refused.errors.firstMatch(of: /fanfare approve (p2-[0-9a-f-]+)/)?.1).description
    }

    @Test func `a command that asks for signatures does not advise itself`() throws {
        let seen = try fanfare(["plan", "new-podcast"] + Installation.words, as: "carl")
        #expect(seen.output.contains("add --for-approval to this command"), "\(seen.output)")
        let asked = try fanfare(["plan", "new-podcast", "--for-approval"] + Installation.words, as: "carl")
        #expect(asked.output.contains("Approval") && !asked.output.contains("--for-approval"), "\(asked.output)")
        #expect(asked.errors.contains("waits for approval:"), "\(asked.errors)")
    }

    @Test func `the one who asked withdraws the request, and its number shows what became of it`() throws {
        let plan = try asked()
        let other = try fanfare(["withdraw", plan], as: "anna")
        #expect(other.status == 3 && other.errors.contains("os:carl requested approval"), "\(other.errors)")
        let ended = try fanfare(["withdraw", plan], as: "carl")
        #expect(ended.status == 0 && ended.output.contains("withdrawn"), "\(ended.errors)")
        #expect(try place.fanfare("approvals").output.contains("no plan or stage waits for approval"))
        #expect(try place.fanfare("approvals", "1").output.contains("withdrawn"))
        #expect(try fanfare(["approve", plan], as: "anna").status != 0)
        #expect(try asked() == plan)
    }

    @Test func `a run is refused until two people have signed its plan, none of them its author, and then once`() throws
    {
        let plan = try asked()
        #expect(try fanfare(["approve", plan], as: "carl").status == 3)
        #expect(try fanfare(["approve", plan], as: "anna").output.contains("awaiting approval, 1 of 2"))
        let second = try fanfare(["approve", plan], as: "anna-admin")
        #expect(second.status == 3 && second.errors.contains("with another account"), "\(second.errors)")
        #expect(try send(as: "carl").status == 3)
        #expect(place.simulator.log().isEmpty)
        #expect(try fanfare(["approve", plan, "--reason", "fine"], as: "ben").output.contains("approved, 2 of 2"))
        let sent = try send(as: "carl")
        #expect(sent.status == 0, "\(sent.errors)")
        #expect(try send(as: "carl").status == 3)
        #expect(try place.fanfare("verify").status == 0)
        #expect(try place.fanfare("approvals", "--all").output.contains("used by run 1"))
    }

    @Test func `neither an account that nobody named counts, nor a reach that nobody was shown`() throws {
        let shown = try asked()
        let eve = try fanfare(["approve", shown], as: "eve")
        #expect(eve.status == 3 && eve.errors.contains("os:eve has no entry in `people`"), "\(eve.errors)")
        let digest = try #require(
            try place.fanfare("approvals", "--json").output.firstMatch(of: /"digest" : "([0-9a-f]{12})/)?.1)
        let blind = try fanfare(["approve", "\(digest)"], as: "anna")
        #expect(blind.status == 65 && blind.errors.contains("give its hash and reach"), "\(blind.errors)")
        let token = String(repeating: "9a", count: 32)
        let lines = try String(contentsOfFile: place.folder.file("devices.csv"), encoding: .utf8)
            .split(separator: "\n").map(String.init)
        try place.folder.write(
            lines[0] + "\n"
                + lines[1].replacing(place.tokens[0], with: token).replacing("install-0", with: "install-x"),
            to: "more.csv")
        #expect(try place.fanfare("devices", "import", "more.csv").status == 0)
        try place.folder.write("installation_id\ninstall-x\n", to: "more-fans.csv")
        #expect(try place.fanfare("segments", "import", "podcast-fans", "more-fans.csv", "--add").status == 0)
        #expect(try asked() != shown)
        let late = try fanfare(["approve", shown], as: "anna")
        #expect(late.status == 3 && late.errors.contains("would reach 7 now; display it again"), "\(late.errors)")
    }

    @Test func `a rejection, an edit and another value each void what was signed`() throws {
        let plan = try asked()
        for user in ["anna", "ben"] { #expect(try fanfare(["approve", plan], as: user).status == 0) }
        #expect(try fanfare(["reject", plan, "--reason", "wrong link"], as: "dora").status == 0)
        let refused = try send(as: "carl")
        #expect(refused.status == 3 && refused.errors.contains("wrong link"), "\(refused.errors)")
        #expect(try fanfare(["approve", plan], as: "anna").status == 66)
        let path = place.folder.file("templates/new-podcast.yaml")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        try place.folder.write(text + "\n# a remark is no change\n", to: "templates/new-podcast.yaml")
        #expect(try send(as: "carl").errors.contains("wrong link"))
        try place.folder.write(text.replacing("Listen now", with: "Hear it now"), to: "templates/new-podcast.yaml")
        let edited = try send(as: "carl")
        #expect(edited.status == 3 && edited.errors.contains("0 of 2"), "\(edited.errors)")
    }

    @Test func `who has no account signs by a key, for this request alone`() throws {
        let key = place.folder.file("eve.pem")
        _ = try OpenSSLCommand.run("genpkey", "-algorithm", "ed25519", "-out", key)
        let der = place.folder.file("eve.der")
        _ = try OpenSSLCommand.run("pkey", "-in", key, "-pubout", "-outform", "DER", "-out", der)
        let raw = try Data(contentsOf: URL(filePath: der)).suffix(32).base64EncodedString()
        try place.configure(more: "approvals: {rules: [{above: 5}]}\npeople: {eve: [\"ed25519:\(raw)\"]}")
        let plan = try asked()
        func signature(of text: String) throws -> String {
            try place.folder.write(text, to: "plan.txt")
            _ = try OpenSSLCommand.run(
                "pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", place.folder.file("plan.txt"), "-out",
                place.folder.file("plan.sig"))
            return place.folder.file("plan.sig")
        }
        let statement = try place.fanfare("approvals", plan, "--statement").output
        #expect(statement.contains("campaign new-podcast\n") && statement.contains("plan \(plan)\n"))
        let forged = try fanfare(
            ["approve", plan, "--signature", try signature(of: statement.replacing("request 1", with: "request 2"))],
            as: "ben")
        #expect(forged.status == 3 && forged.errors.contains("is not a signature of this plan"), "\(forged.errors)")
        #expect(try fanfare(["approve", plan, "--signature", key], as: "ben").status == 3)
        #expect(try fanfare(["approve", plan, "--signature", "/nowhere.sig"], as: "ben").status == 66)
        #expect(try place.fanfare("audit").output.contains("submitted by") == false)
        let good = try signature(of: statement)
        let signed = try fanfare(["approve", plan, "--signature", good], as: "ben")
        #expect(signed.output.contains("signed by eve, by a key"), "\(signed.output)\(signed.errors)")
        #expect(try place.fanfare("audit").output.contains("of eve, by a key, submitted by root"))
        #expect(try send(as: "carl").status == 0)
        // The same plan asked for once more is another request.
        let next = try send(as: "carl", "--occurrence", "second")
        #expect(next.status == 3, "\(next.errors)")
        let replayed = try fanfare(["approve", plan, "--signature", good], as: "ben")
        #expect(replayed.status == 3 && replayed.errors.contains("is not a signature"), "\(replayed.errors)")
    }

    @Test func `the signatures are overridden with a reason, by whom the configuration names, and below the ceiling`()
        throws
    {
        #expect(try send(as: "carl", "--break-glass").status == 64)
        #expect(try send(as: "carl", "--break-glass", "--reason", "quake").errors.contains("os:carl"))
        let sent = try send(as: "dora", "--break-glass", "--reason", "quake")
        #expect(sent.status == 0, "\(sent.errors)")
        #expect(sent.errors.contains("WARNING: RUN 1 IS SENT WITHOUT THE SIGNATURES THAT IT NEEDS"), "\(sent.errors)")
        #expect(try place.fanfare("audit").output.contains("quake"))
        for words in [["status", "1"], ["report", "1"]] {
            let output = try Program.run(words, in: place.folder).output
            #expect(output.contains("started without its signatures by root"), "\(output)")
            #expect(output.contains("for dora: quake"), "\(output)")
        }
        try place.configure(more: "approvals: {rules: [{above: 5}], ceiling: 5, break_glass: true}")
        let refused = try send(as: "dora", "--break-glass", "--reason", "quake", "--again")
        #expect(refused.status == 3 && refused.errors.contains("ceiling"), "\(refused.errors)")
    }
}

/// Whether the kernel knows who did; then it does not matter whom `sudo` names.
let isSignedIn =
    (try? String(contentsOfFile: "/proc/self/loginuid", encoding: .utf8)).map { $0 != "4294967295" } ?? false
