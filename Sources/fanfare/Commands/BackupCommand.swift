import ArgumentParser
import Campaigns
import Foundation
import Model

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

    func run() async throws {
        let session = try settings.session()
        let result = try await MaintainStore(store: session.store).backUp(
            to: file, overwriting: force, by: session.actor, now: session.now)
        Console.print(
            json
                ? try JSONOutput.text(result)
                : "\(file): \(result.bytes.grouped) bytes, \(result.devices.grouped) devices, \(result.runs.grouped) runs; "
                    + "checked, and on disk")
    }
}
