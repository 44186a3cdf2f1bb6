import Foundation
import Synchronization

/// Replaces the whole text of a file, or leaves the file unchanged. Another reader, such as the daemon or a person,
/// sees either the old or the new text, even after a crash.
enum AtomicFile {
    /// The entry that a path names.
    enum Entry: Hashable {
        case nothing
        case file(hash: String)
        /// A link, a folder or a special file. Such an entry is neither followed nor replaced.
        case other
    }

    /// Serialises this process's writers, so that compare-and-replace is atomic among them.
    private static let lock = Mutex(())

    static func entry(at path: String) throws -> Entry {
        // This call does not follow links.
        guard let facts = try? FileManager.default.attributesOfItem(atPath: path) else { return .nothing }
        guard facts[.type] as? FileAttributeType == .typeRegular else { return .other }
        return .file(hash: try FileHash.hash(of: path))
    }

    /// Writes the text and returns `nil` if the path still has the `expected` entry. Otherwise returns the entry
    /// found.
    static func write(_ text: String, to path: String, expecting expected: Entry) throws -> Entry? {
        try lock.withLock { _ in
            let found = try entry(at: path)
            guard found == expected else { return found }
            let draft = draftPath(besides: path)
            defer { unlink(draft) }
            try save(text, to: draft, mode: mode(of: path))
            // `link` fails if another process has just created the file; `rename` would replace that file.
            let isDone = found == .nothing ? link(draft, path) == 0 : rename(draft, path) == 0
            if !isDone, errno == EEXIST { return try entry(at: path) }
            guard isDone else { throw fault(path) }
            flushFolder(of: path)
            return nil
        }
    }

    /// Deletes the file and returns `nil` if the path still has the `expected` entry. Otherwise returns the entry
    /// found.
    static func remove(_ path: String, expecting expected: Entry) throws -> Entry? {
        try lock.withLock { _ in
            let found = try entry(at: path)
            guard found == expected else { return found }
            guard unlink(path) == 0 else { throw fault(path) }
            flushFolder(of: path)
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

    private static func flushFolder(of path: String) {
        let descriptor = open(URL(filePath: path).deletingLastPathComponent().path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    /// Returns the failure for `errno` after a system call that failed.
    private static func fault(_ path: String) -> Failure {
        let code = errno
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
