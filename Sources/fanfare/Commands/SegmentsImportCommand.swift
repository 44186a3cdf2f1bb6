import ArgumentParser
import CampaignFiles
import Foundation
import Model
import Store

struct SegmentsImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Set a segment's members from a file.",
        discussion: """
            The file is CSV with one column named installation_id, user_id or token, or one installation id a line. \
            The segment changes as a whole or not at all.
            """)

    private static let batchMax = 10_000

    @OptionGroup var settings: Settings
    @Argument(help: "The segment's name.") var name: String
    @Argument(help: "A file of members; - for standard input.", completion: .file()) var file: String
    @Flag(help: "Make the members exactly those of the file (default), add them, or remove them.")
    var mode = SegmentImportMode.replace
    @Option(help: "Only devices of this topic.") var topic: String?
    @Option(help: "Where bad lines go (default: FILE.rejects.csv).") var rejects: String?
    @Flag(help: "Print the result as JSON.") var json = false

    struct Result: Encodable {
        var segment: String
        var read: Int
        var rejected: Int
        var added: Int
        var alreadyIn: Int
        var removed: Int
        var unmatched: Int
    }

    func run() async throws {
        let store = try settings.store(try settings.configuration())
        let rejectsPath = rejects ?? (file == "-" ? "stdin.rejects.csv" : file + ".rejects.csv")
        let result = try await Interruptible.run("segment \(name) is as it was; give the same command again") {
            try await load(into: store, rejectsPath)
        }
        Console.print(json ? try JSONOutput.text(result) : Self.text(result, rejectsPath))
        if result.rejected > 0 { throw ExitStatus.invalidData.exitCode }
    }

    private func load(into store: any AllRoles, _ rejectsPath: String) async throws -> Result {
        let change = try await store.importSegment(name, mode: mode, topic: topic)
        let lines = try await SegmentFileReader(path: file, rejectsPath: rejectsPath)
            .forEachBatch(size: Self.batchMax) { members in
                try await change.append(members.map(\.key))
                try Task.checkCancellation()
            }
        let counts = try await change.commit(now: Timestamp(Date()))
        return Result(
            segment: name, read: lines.read, rejected: lines.rejected, added: counts.added,
            alreadyIn: counts.alreadyIn, removed: counts.removed, unmatched: counts.unmatched)
    }

    private static func text(_ result: Result, _ rejectsPath: String) -> String {
        "segment \(result.segment): \(result.read.grouped) lines, \(result.added.grouped) devices added, "
            + "\(result.alreadyIn.grouped) were in it, \(result.removed.grouped) removed, "
            + "\(result.unmatched.grouped) lines without a device, \(result.rejected.grouped) rejected"
            + (result.rejected > 0 ? "; see \(rejectsPath)" : "")
    }
}

extension SegmentImportMode: EnumerableFlag {}

extension SegmentMember {
    fileprivate var key: SegmentMemberKey {
        switch self {
        case .installationID(let id): .installation(id)
        case .userID(let id): .user(id)
        case .token(let token): .token(token)
        }
    }
}
