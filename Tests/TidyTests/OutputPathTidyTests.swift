import Foundation
import Testing

/// A path that a person named is written by `OutputFiles` alone: elsewhere only files of Fanfare's own are replaced or
/// removed, each in a place of this list.
struct OutputPathTidyTests {
    /// Files that are Fanfare's own: the store's drafts, the lock of its upgrade and the note of its last good check,
    /// the senders' folder, the demo's and the tests' folders, the keys that the configuration names, and uploads
    /// of devices.
    private static let own: Set<String> = [
        "SQLiteFileStore+StoreUpkeep.swift", "StoreRestoration.swift", "Schema.swift", "UpgradeLock.swift",
        "AtomicFile.swift",
        "SaveIntent.swift",
        "StopFile.swift", "SenderFolder.swift", "LockFile.swift", "PushJournal.swift", "SimulatorRegistry.swift",
        "Settings.swift",
        "InstallCommand.swift",
        "ThisProcess.swift", "FileCommands.swift", "LastGoodVerify.swift", "ManageSetup+Keys.swift",
        "DeviceUploads.swift",
    ]

    @Test func `only these files replace, truncate or remove files`() throws {
        let root = `Tidiness`.root.appending(path: "Sources")
        let pattern = try Regex(
            #"(^|[^\w.])(rename|unlink|renameat|unlinkat|truncate|ftruncate)\(|O_CREAT|O_TRUNC|removeItem\(|moveItem\(|replaceItem|write\(to: URL|options: \.atomic|createFile\("#
        )
        let found = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
        for file in (found?.allObjects ?? []).compactMap({ $0 as? URL }) where file.pathExtension == "swift" {
            guard !file.path.contains("/OutputFiles/"), !Self.own.contains(file.lastPathComponent) else { continue }
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                let code = line.drop { $0 == " " }
                guard !code.hasPrefix("//") else { continue }
                #expect(
                    code.firstMatch(of: pattern) == nil,
                    "\(file.lastPathComponent): \(code); write a path that a person named through OutputPath")
            }
        }
    }
}
