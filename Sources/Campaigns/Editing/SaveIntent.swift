import Foundation

/// The record of a save of several files, on disk from before the first file is replaced until all are. After a crash
/// in between, the next reader or writer of the folder finishes the save, or takes it back.
struct SaveIntent: Codable {
    /// One file of the save. Its names are those within the folder.
    struct Step: Codable {
        var folder: String
        var name: String
        /// SHA-256 of the replaced text; `nil` for a new file.
        var expected: String?
        /// SHA-256 of the new text.
        var new: String
        var draft: String
        var old: String
    }

    /// The name of the record. It begins with a dot, and no campaign's file has such a name.
    static let name = ".fanfare-save"

    var steps: [Step]

    static func path(in folder: String) -> String { "\(folder)/\(name)" }

    /// Whether a save is not finished in one of the folders.
    static func exists(in folders: [String]) -> Bool {
        folders.contains { FileManager.default.fileExists(atPath: path(in: $0)) }
    }

    /// Finishes or takes back the saves that a crash interrupted. A record stays if a file cannot be replaced. The
    /// caller holds the exclusive lock of the folders.
    static func recover(in folders: [String]) {
        for folder in folders where exists(in: [folder]) {
            let record = path(in: folder)
            // A record that was not written whole belongs to a save that replaced nothing.
            let data = FileManager.default.contents(atPath: record)
            let intent = data.flatMap { try? JSONDecoder().decode(SaveIntent.self, from: $0) }
            guard let intent else {
                if data != nil { unlink(record) }
                continue
            }
            let known = Set(folders.map(FileHash.absolute))
            let staged = intent.steps.compactMap { $0.staged(known) }
            // A record that names other folders is none of Fanfare's.
            guard staged.count == intent.steps.count else { continue }
            guard settle(staged) else { continue }
            for folder in Set(staged.map(\.file.folder)) { AtomicFile.flush(folder) }
            guard remove(record) else { continue }
            for one in staged { one.file.discard() }
        }
    }

    /// Removes a record from the disk. Returns `false` if it is still there.
    static func remove(_ record: String) -> Bool {
        guard unlink(record) == 0 || errno == ENOENT else { return false }
        AtomicFile.flush(URL(filePath: record).deletingLastPathComponent().path)
        return true
    }

    private static func settle(_ staged: [(file: AtomicFile.Staged, new: AtomicFile.Entry)]) -> Bool {
        func entry(_ path: String) -> AtomicFile.Entry { (try? AtomicFile.entry(at: path)) ?? .other }
        let open = staged.filter { entry($0.file.text.path) != $0.new }
        let isWhole = open.allSatisfy { file, new in
            entry(file.text.path) == file.text.expected && entry(file.draft) == new
        }
        if isWhole { return open.allSatisfy { $0.file.replace() } }
        // Another person changed a file after the crash: the others get their old texts.
        for (file, new) in staged where entry(file.text.path) == new { file.undo() }
        return true
    }
}

extension SaveIntent.Step {
    /// Returns `nil` if the step would touch a file outside the folders.
    fileprivate func staged(_ folders: Set<String>) -> (file: AtomicFile.Staged, new: AtomicFile.Entry)? {
        guard folders.contains(folder), [name, draft, old].allSatisfy({ !$0.contains("/") && $0 != ".." }) else {
            return nil
        }
        let text = AtomicFile.Replacement(
            path: "\(folder)/\(name)", text: "", expected: expected.map { .file(hash: $0) } ?? .nothing)
        let file = AtomicFile.Staged(text, draft: "\(folder)/\(draft)", old: "\(folder)/\(old)")
        return (file, .file(hash: new))
    }
}
