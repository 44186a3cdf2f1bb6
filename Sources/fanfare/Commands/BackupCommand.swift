import ArgumentParser
import Foundation
import Model
import Store

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Copy the store as it is now to a file, also while it is in use.",
        discussion: """
            The copy is of one moment, is checked for damage, and has its name only once it is whole and on disk. It holds \
            whole tokens: it is readable by its owner only. To go back to it, stop whatever uses the store, remove the \
            store's -wal and -shm files, and put the copy in its place.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "Where to; its folder must exist.", completion: .file()) var file: String
    @Flag(help: "Replace a file that is there.") var force = false
    @Flag(help: "Print the result as JSON.") var json = false

    /// The stable shape of `backup --json`.
    struct Result: Encodable {
        var file: String
        var bytes, devices, runs, storeVersion: Int
    }

    func run() async throws {
        let store = try settings.store(try settings.configuration())
        let summary = try await store.backUp(to: file, overwriting: force)
        try await store.recordEvent(
            kind: .backedUp, run: nil, actor: ThisProcess.actor, detail: file, now: Timestamp(Date()))
        let result = Result(
            file: file, bytes: summary.bytes, devices: summary.devices, runs: summary.runs,
            storeVersion: summary.version)
        Console.print(
            json
                ? try JSONOutput.text(result)
                : "\(file): \(summary.bytes.grouped) bytes, \(summary.devices.grouped) devices, \(summary.runs.grouped) runs; "
                    + "checked, and on disk")
    }
}
