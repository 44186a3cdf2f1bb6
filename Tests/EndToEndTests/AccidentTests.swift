import APNsSimulator
import Foundation
import Platform
import TestSupport
import Testing

/// Accidents that have happened to others, each as it would have gone here without its guard and as it goes with it:
/// how many people saw it, by their screens.
@Suite(.ownThread, .timeLimit(.minutes(20))) struct `An accident` {
    private static let devices = 2_000
    private static let stages = "stages: [{share: 10%, tolerate: 5%}, {rest: true}]\n"

    private func place(
        imported: Int = Self.devices, _ change: (inout SimulatorOptions) -> Void = { _ in }
    ) throws -> Installation {
        let place = try Installation(devices: Self.devices) { options in
            options.simulatesDevices = true
            change(&options)
        }
        // One in fifty reads French; ten work here.
        let lines = place.tokens.enumerated().map { number, token in
            let locale = number % 50 == 7 ? "fr" : "de"
            return "\(token),production,\(Installation.topic),install-\(number),2026-01-01T00:00:00Z,\(locale),"
                + (number % 200 == 0 ? "staff" : "") + "\n"
        }
        let head = "token,environment,topic,installation_id,registered_at,locale,tags\n"
        try place.folder.write(head + lines.joined(), to: "devices.csv")
        try place.folder.write(head + lines.prefix(imported).joined(), to: "first.csv")
        let first = try place.fanfare("devices", "import", "first.csv")
        try #require(first.status == 0, "\(first.errors)")
        return place
    }

    private func write(
        _ name: String, _ body: String, _ more: String, to place: Installation
    ) throws {
        try place.folder.write(
            "template: \(name)\ndefault_locale: de\nalert: {de: {body: \"\(body)\"}, fr: {body: \"\(body)\"}}\n",
            to: "templates/\(name).yaml")
        try place.folder.write(
            """
            campaign: \(name)
            topic: \(Installation.topic)
            push_type: alert
            template: \(name)
            audience: locale in ("de", "fr")
            expires_after: 1h
            \(more)
            """, to: "campaigns/\(name).yaml")
    }

    private func saw(_ body: String, _ place: Installation) -> Int {
        place.simulator.devices().devicesByPayload[#"{"aps":{"alert":{"body":"\#(body)"}}}"#, default: 0]
    }

    /// BBC News 2014, mBank 2020, HBO Max 2021: the words of a test, the audience of everybody.
    @Test func `the test to everybody is seen by those who work here`() async throws {
        try await OwnThread.run {
            let place = try place()
            try write("careless", "Testing, testing", "", to: place)
            #expect(try place.fanfare("run", "careless", "--yes").status == 0)
            #expect(saw("Testing, testing", place) == Self.devices)
            try write(
                "careful", "Just a trial", "stages: [{seeds: 'tag(\"staff\")'}, {rest: true, needs: approval}]\n",
                to: place)
            let run = try place.fanfare("run", "careful", "--yes")
            #expect(run.status == 76 && run.errors.contains("fanfare approve 2 --stage 2"), "\(run.errors)")
            #expect(saw("Just a trial", place) == 10)
            let waiting = try place.fanfare("approvals")
            #expect(waiting.output.contains("stage 2 of run 2 waits for approval"), "\(waiting.output)")
            #expect(waiting.output.contains("`fanfare approve 2 --stage 2` starts it"))
            #expect(try place.fanfare("approvals", "--json").output.contains(#""stage" : 2"#))
            #expect(try place.fanfare("cancel", "2", "--reason", "a test").status == 0)
            #expect(try place.fanfare("report", "2", "--check").output.contains("The counts balance."))
            // Who counts before they start has nobody see it.
            try write("counted", "Only a rehearsal", "guards: {max_reach: 10}\n", to: place)
            #expect(try place.fanfare("run", "counted", "--yes").status == 3)
            #expect(saw("Only a rehearsal", place) == 0)
        }
    }

    /// The tokens of one world sent to the other.
    @Test func `the wrong environment is found out by a few answers`() async throws {
        try await OwnThread.run {
            var asked: [Int] = []
            for stages in ["", Self.stages] {
                let place = try place()
                try place.configure(production: "127.0.0.1:\(place.simulator.port(for: .sandbox))")
                try write("news", "News", stages, to: place)
                let run = try place.fanfare("run", "news", "--yes")
                #expect(run.status == 76, "\(run.errors)")
                asked.append(place.simulator.counts().requests)
                #expect(saw("News", place) == 0)
                // No device was given up for it.
                #expect(try place.fanfare("report", "1").output.contains("Devices cleaned") == false)
                // Once it is put right everybody gets it once.
                try place.configure()
                let healed = try place.fanfare("resume", "1")
                #expect(healed.status == 0, "\(healed.errors)")
                #expect(saw("News", place) == Self.devices)
            }
            #expect(asked[1] <= 64 && asked[1] <= asked[0], "\(asked)")
        }
    }

    /// A text that Apple refuses in one language of fifty: two percent, which no threshold over all would show.
    @Test func `a text that is broken for one in fifty stops before most are asked`() async throws {
        try await OwnThread.run {
            var refused: [Int] = []
            for stages in ["", Self.stages] {
                let place = try place()
                let broken = stride(from: 7, to: Self.devices, by: 50).map { place.tokens[$0] }
                place.simulator.setFaults(
                    broken.map { token in
                        FaultRule(
                            when: .token(Hex.bytes(of: token) ?? []),
                            action: .answer(status: 413, reason: "PayloadTooLarge"))
                    })
                try write("news", "News", stages, to: place)
                let run = try place.fanfare("run", "news", "--yes")
                refused.append(place.simulator.counts().rejected["PayloadTooLarge", default: 0])
                guard !stages.isEmpty else {
                    #expect(run.status == 0)
                    continue
                }
                #expect(run.status == 76 && run.errors.contains("stage 1 (10 %)"), "\(run.errors)")
                #expect(place.simulator.counts().requests < Self.devices / 4)
                place.simulator.setFaults([])
                #expect(try place.fanfare("resume", "1").status == 0)
            }
            #expect(refused[0] == 40 && refused[1] <= 10, "\(refused)")
        }
    }

    /// A file of devices from the year before: most of them are gone.
    @Test func `an old backup that was imported is noticed by its first devices`() async throws {
        try await OwnThread.run {
            var asked: [Int] = []
            for stages in ["", Self.stages] {
                let place = try place()
                let now = Int64(Date().timeIntervalSince1970 * 1000)
                place.simulator.changeRegistry { registry in
                    for number in place.tokens.indices where number % 10 < 6 {
                        registry.setGone(
                            token: Hex.bytes(of: place.tokens[number]) ?? [], environment: .production, since: now)
                    }
                }
                try write("news", "News", stages, to: place)
                let run = try place.fanfare("run", "news", "--yes")
                #expect(run.status == 76, "\(run.errors)")
                asked.append(place.simulator.counts().requests)
                #expect(run.errors.contains("too many devices are gone"), "\(run.errors)")
                // No device was given up for it.
                #expect(try place.fanfare("report", "1").output.contains("Devices cleaned") == false)
                guard stages.isEmpty else { continue }
                // A person says that it is so.
                let resumed = try place.fanfare("resume", "1")
                #expect(resumed.status == 0, "\(resumed.errors)")
                #expect(try place.fanfare("report", "1").output.contains("Devices cleaned: 1,200 gone"))
            }
            #expect(asked[0] == Self.devices && asked[1] < 200, "\(asked)")
        }
    }

    /// PushMonkey 2017: two schedulers, or one and a person who was not sure.
    @Test func `the second copy is no second run, unless the command says so`() async throws {
        try await OwnThread.run {
            let place = try place()
            try write("careless", "Sale", "", to: place)
            #expect(try place.fanfare("run", "careless", "--yes").status == 0)
            #expect(try place.fanfare("run", "careless", "--yes").status == 3)
            #expect(place.simulator.devices().devicesWithSeveral == 0)
            #expect(try place.fanfare("run", "careless", "--yes", "--again").status == 0)
            #expect(place.simulator.devices().devicesWithSeveral == Self.devices)
            place.simulator.changeDevices { $0 = SimulatedDevices() }
            try write("careful", "Sale", "", to: place)
            for _ in 0..<2 {
                #expect(try place.fanfare("run", "careful", "--occurrence", "sale", "--yes").status == 0)
            }
            #expect(place.simulator.devices().devicesWithSeveral == 0 && saw("Sale", place) == Self.devices)
        }
    }

    /// What was agreed on, and what is sent.
    @Test func `a plan that has drifted is not sent`() async throws {
        try await OwnThread.run {
            let place = try place()
            try write("news", "Agreed", "", to: place)
            let plan = try place.fanfare("plan", "news").output
            let hash = try #require(
                plan.split(separator: "\n").first { $0.hasPrefix("Plan") }?.split(separator: " ").last)
            try write("news", "Never agreed", "", to: place)
            let held = try place.fanfare("run", "news", "--yes", "--plan", String(hash))
            #expect(held.status == 3 && held.errors.contains("the template has changed"), "\(held.errors)")
            #expect(saw("Never agreed", place) == 0)
            #expect(try place.fanfare("run", "news", "--yes").status == 0)
            #expect(saw("Never agreed", place) == Self.devices)
        }
    }

    /// Two people signed it for a tenth of the devices, or with other words.
    @Test(.enabled(if: getuid() == 0 && !isSignedIn), arguments: ["the audience", "the text"])
    func `an approval that has drifted lets nothing through`(what: String) async throws {
        try await OwnThread.run {
            let isText = what == "the text"
            let place = try place(imported: isText ? Self.devices : 200)
            func send(as user: String, _ words: String...) throws -> Program.Result {
                try Program.run(words, in: place.folder, environment: ["SUDO_USER": user])
            }
            try place.configure(more: "approvals: {rules: [{above: 100, needs: 2}]}")
            try write("news", "Agreed", "", to: place)
            let asked = try send(as: "carl", "run", "news", "--yes").errors
            let plan = try #require(asked.firstMatch(of: /fanfare approve (p2-[0-9a-f-]+)/)?.1, "\(asked)")
            for user in ["anna", "ben"] { #expect(try send(as: user, "approve", String(plan)).status == 0) }
            if isText {
                try write("news", "Never agreed", "", to: place)
            } else {
                #expect(try place.fanfare("devices", "import", "devices.csv").status == 0)
            }
            let body = isText ? "Never agreed" : "Agreed"
            let held = try send(as: "carl", "run", "news", "--yes")
            #expect(held.status == 3 && held.errors.contains("0 of 2"), "\(held.errors)")
            #expect(isText || held.errors.contains("it was signed for 200 devices"), "\(held.errors)")
            #expect(saw(body, place) == 0)
            try place.configure()
            #expect(try send(as: "carl", "run", "news", "--yes").status == 0)
            #expect(saw(body, place) == Self.devices)
        }
    }

    /// Whoever leaves out the filter has not said that they mean everybody.
    @Test func `a filter that is missing is an error, and seen by nobody`() async throws {
        try await OwnThread.run {
            let place = try place()
            try write("news", "For a few", "", to: place)
            let path = "campaigns/news.yaml"
            let file = try String(contentsOfFile: place.folder.file(path), encoding: .utf8)
            let filter = "audience: locale in (\"de\", \"fr\")\n"
            try place.folder.write(file.replacing(filter, with: ""), to: path)
            let refused = try place.fanfare("run", "news", "--yes")
            #expect(refused.status == 65 && refused.errors.contains("has no audience"), "\(refused.errors)")
            #expect(saw("For a few", place) == 0)
            try place.folder.write(file.replacing(filter, with: "audience: everyone\n"), to: path)
            #expect(try place.fanfare("run", "news", "--yes").status == 0)
            #expect(saw("For a few", place) == Self.devices)
        }
    }
}
