import Foundation
import Platform
import Synchronization

/// Replaces the whole texts of files, or leaves all of them unchanged. Another reader, such as the daemon or a person,
/// sees either the old or the new text, even after a crash.
enum AtomicFile {
    /// The entry that a path names.
    enum Entry: Hashable {
        case nothing
        case file(hash: String)
        /// A link, a folder or a special file. Such an entry is neither followed nor replaced.
        case other
    }

    /// A text for a path, in place of the entry that its author has seen there.
    struct Replacement {
        var path: String
        var text: String
        var expected: Entry
    }

    /// A path that does not have the expected entry.
    struct Mismatch {
        var path: String
        var expected: Entry
        var found: Entry
    }

    /// Serialises this process's writers, so that compare-and-replace is atomic among them, and keeps readers of
    /// several files away meanwhile. ``FolderLock`` does the same among processes.
    private static let lock = Mutex(())

    /// Reads files that belong together, such as a campaign and its templates, while no process has replaced only some
    /// of them. Throws if a save of several files is not finished. The body must not write.
    static func reading<Value: Sendable>(_ folders: [String], _ body: () throws -> Value) throws -> Value {
        try lock.withLock { _ in
            var hold = FolderLock(folders, .shared)
            defer { hold.release() }
            if SaveIntent.exists(in: folders) {
                hold.release()
                hold = FolderLock(folders, .exclusive)
                try recover(folders, hold)
            }
            return try body()
        }
    }

    private static func recover(_ folders: [String], _ hold: FolderLock) throws {
        if hold.isHeld { SaveIntent.recover(in: folders) }
        guard !SaveIntent.exists(in: folders) else {
            throw Failure(
                .tryAgain,
                "a save of several files in \(folders.joined(separator: ", ")) is not finished; retry, or save as a user who "
                    + "may write there")
        }
    }

    private static func writing<Value: Sendable>(_ folders: [String], _ body: () throws -> Value) throws -> Value {
        try lock.withLock { _ in
            let hold = FolderLock(folders, .exclusive)
            defer { hold.release() }
            guard hold.isHeld else {
                throw Failure(
                    .tryAgain, "another process writes files in \(folders.joined(separator: ", ")); retry in a moment")
            }
            try recover(folders, hold)
            if hold.isSupported { for folder in folders { removeDrafts(in: folder) } }
            return try body()
        }
    }

    /// Removes the drafts of writers that crashed. The caller holds the lock, so that no writer is at work.
    private static func removeDrafts(in folder: String) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        where name.hasPrefix(".") && name.hasSuffix(".tmp") {
            let parts = name.split(separator: ".")
            guard parts.count >= 4, ["yaml", "yml"].contains(parts[parts.count - 3]),
                UInt32(parts[parts.count - 2]) != nil
            else { continue }
            unlink("\(folder)/\(name)")
        }
    }

    static func entry(at path: String) throws -> Entry {
        // This call does not follow links.
        guard let facts = try? FileManager.default.attributesOfItem(atPath: path) else { return .nothing }
        guard facts[.type] as? FileAttributeType == .typeRegular else { return .other }
        return .file(hash: try FileHash.hash(of: path))
    }

    /// Writes the text and returns `nil` if the path still has the `expected` entry. Otherwise returns the entry
    /// found.
    static func write(_ text: String, to path: String, expecting expected: Entry) throws -> Entry? {
        try write([Replacement(path: path, text: text, expected: expected)])?.found
    }

    /// Writes all texts, or none, also after a crash. Writes none, and returns the first path that does not have its
    /// expected entry, if there is one.
    ///
    /// - Parameter folders: the folders of which readers read files together.
    static func write(_ texts: [Replacement], in folders: [String] = []) throws -> Mismatch? {
        let own = Set(texts.map { folder(of: $0.path) })
        return try writing(own.union(folders.map(FileHash.absolute)).sorted()) {
            for text in texts {
                let found = try entry(at: text.path)
                guard found == text.expected else {
                    return Mismatch(path: text.path, expected: text.expected, found: found)
                }
            }
            let staged = texts.map { Staged($0) }
            defer { end(staged) }
            try begin(staged)
            for (index, one) in staged.enumerated() where !one.replace() {
                let code = errno
                for done in staged[..<index].reversed() { done.undo() }
                for folder in own { flush(folder) }
                guard code == EEXIST else { throw fault(one.text.path, code) }
                return Mismatch(path: one.text.path, expected: one.text.expected, found: try entry(at: one.text.path))
            }
            for folder in own { flush(folder) }
            return nil
        }
    }

    /// Saves the drafts and, if there are several, the intent to put all of them in place.
    static func begin(_ staged: [Staged]) throws {
        for one in staged { try save(one.text.text, to: one.draft, mode: mode(of: one.text.path)) }
        guard staged.count > 1, let record = record(of: staged) else { return }
        for folder in Set(staged.map(\.folder)) { flush(folder) }
        let intent = try JSONEncoder().encode(SaveIntent(steps: staged.map(\.step)))
        try save(String(decoding: intent, as: UTF8.self), to: record, mode: nil)
        flush(folder(of: record))
    }

    /// Removes the record first, then the leftovers. A record without its leftovers would undo a finished save if
    /// another person changes a file before the next reader.
    static func end(_ staged: [Staged]) {
        if staged.count > 1, let record = record(of: staged), !SaveIntent.remove(record) { return }
        for one in staged { one.discard() }
    }

    private static func record(of staged: [Staged]) -> String? { staged.last.map { SaveIntent.path(in: $0.folder) } }

    private static func folder(of path: String) -> String {
        URL(filePath: FileHash.absolute(path)).deletingLastPathComponent().path
    }

    /// A text that is saved beside its path, and put in place by one system call.
    struct Staged {
        let text: Replacement
        let draft: String
        /// A second name of the replaced file, until all texts are in place.
        private let old: String

        init(_ text: Replacement, draft: String? = nil, old: String? = nil) {
            self.text = text
            self.draft = draft ?? draftPath(besides: text.path)
            self.old = old ?? draftPath(besides: text.path)
        }

        var folder: String { AtomicFile.folder(of: text.path) }

        var step: SaveIntent.Step {
            func name(_ path: String) -> String { URL(filePath: path).lastPathComponent }
            var before: String?
            if case .file(let hash) = text.expected { before = hash }
            return SaveIntent.Step(
                folder: folder, name: name(text.path), expected: before,
                new: Digest.sha256Hex(Array(text.text.utf8)), draft: name(draft), old: name(old))
        }

        /// Returns `false`, with the reason in `errno`, if the text could not be put in place.
        func replace() -> Bool {
            // `link` fails if another process has just created the file; `rename` would replace that file.
            guard text.expected != .nothing else { return link(draft, text.path) == 0 }
            // Fails where the system protects another user's file from links: such a file cannot be put back.
            link(text.path, old)
            return rename(draft, text.path) == 0
        }

        func undo() {
            if text.expected == .nothing { unlink(text.path) } else { rename(old, text.path) }
        }

        func discard() {
            unlink(draft)
            unlink(old)
        }
    }

    /// Deletes the file and returns `nil` if the path still has the `expected` entry. Otherwise returns the entry
    /// found.
    static func remove(_ path: String, expecting expected: Entry) throws -> Entry? {
        try writing([folder(of: path)]) {
            let found = try entry(at: path)
            guard found == expected else { return found }
            guard unlink(path) == 0 else { throw fault(path) }
            flush(URL(filePath: path).deletingLastPathComponent().path)
            return nil
        }
    }

    /// Returns a path for the draft in the same folder, so that the draft can be renamed to the file. The draft's
    /// name begins with a dot, and no campaign's file has such a name.
    private static func draftPath(besides path: String) -> String {
        let url = URL(filePath: path)
        return url.deletingLastPathComponent()
            .appending(path: ".\(url.lastPathComponent).\(UInt32.random(in: 0 ... .max)).tmp").path
    }

    private static func save(_ text: String, to path: String, mode: mode_t?) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode ?? 0o644)
        guard descriptor >= 0 else { throw fault(path) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // The file keeps its own mode, regardless of the umask.
        if let mode, fchmod(descriptor, mode) != 0 { throw fault(path) }
        do {
            try file.write(contentsOf: Data(text.utf8))
        } catch {
            throw fault(path)
        }
        guard fsync(descriptor) == 0 else { throw fault(path) }
    }

    private static func mode(of path: String) -> mode_t? {
        let facts = try? FileManager.default.attributesOfItem(atPath: path)
        return (facts?[.posixPermissions] as? NSNumber).map { mode_t($0.uint32Value) & 0o7777 }
    }

    static func flush(_ folder: String) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    /// Returns the failure for `errno` after a system call that failed.
    private static func fault(_ path: String, _ code: Int32 = errno) -> Failure {
        let advice =
            switch code {
            case EACCES, EPERM, EROFS:
                "the server's user may not write there; make that user the folder's owner and, under systemd, name the "
                    + "folder in ReadWritePaths= (`systemctl edit fanfare`), or set editing: false"
            case ENOSPC, EDQUOT: "free disk space"
            default: "check the folder and its disk"
            }
        return Failure(
            code == ENOSPC || code == EDQUOT || code == EIO ? .inputOutput : .cannotMake,
            "\(path) cannot be written (error \(code)); \(advice)")
    }
}
