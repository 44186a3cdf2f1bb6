package import Foundation

/// A path that a person named for output, and the only way by which such a path is written.
///
/// - A regular file is replaced once its new content is whole. It keeps its owner and its mode.
/// - A link is followed: the file behind it gets the content, and the link stays.
/// - A device, a FIFO or a descriptor (`/dev/null`, `/dev/stdout`) is written through. It is never removed or replaced.
package struct OutputPath: Hashable, Sendable {
    /// Who may read the file afterwards.
    package enum Privacy: Hashable, Sendable {
        /// A new file is for its owner. A file that exists keeps its mode.
        case asFound
        /// The content holds tokens: also an existing file is closed to other users. Its group keeps its rights.
        case closedToOthers
    }

    /// What the path leads to, behind all links.
    package enum Entry: Hashable, Sendable {
        case nothing
        case file(FileFacts)
        /// A device, a FIFO, a socket or a descriptor of this process.
        case stream
    }

    /// What a file keeps when its content is replaced.
    package struct FileFacts: Hashable, Sendable {
        var mode: mode_t
        var owner: uid_t
        var group: gid_t
        var names: UInt64
    }

    private static let linksMax = 40
    private static let nameBytesMax = 200

    /// The path as the person wrote it, for messages.
    package let named: String

    package init(_ named: String) { self.named = named }

    /// Returns what is there now. Throws for a folder, and for links that lead nowhere but to each other.
    package func entry() throws(OutputFault) -> Entry { try found().entry }

    /// Opens the path to write all of it. See ``OutputWriter/finish()``.
    ///
    /// - Parameters:
    ///   - mode: the mode of a file that is new.
    ///   - isWhole: the file appears, or changes, only when all is written. Otherwise it grows as it is written.
    package func open(
        mode: mode_t = 0o600, _ privacy: Privacy = .asFound, isWhole: Bool = true
    ) throws(OutputFault) -> OutputWriter {
        let place = try found()
        switch place.entry {
        case .stream: return OutputWriter(self, .stream, try place.openStream(named))
        case .nothing where isWhole: return try draft(place, facts: nil, mode: mode)
        case .nothing:
            let file = try Self.open(place.path, O_CREAT | O_EXCL | O_NOFOLLOW, mode)
            // The umask may have taken away what the owner needs.
            fchmod(file, mode)
            return OutputWriter(self, .direct(place.path, isNew: true), file)
        case .file(let facts):
            let kept = Self.mode(facts.mode, privacy)
            // Another name of the file, or a file whose owner this user cannot restore, keeps its inode.
            if isWhole, facts.names == 1 {
                do {
                    return try draft(place, facts: facts, mode: kept)
                } catch {
                    guard [EACCES, EPERM, EROFS].contains(error.code) else { throw error }
                }
            }
            let file = try Self.open(place.path, O_TRUNC, 0)
            if kept != facts.mode { fchmod(file, kept) }
            return OutputWriter(self, .direct(place.path, isNew: false), file)
        }
    }

    /// Returns whether a regular file is there, and its first bytes are these.
    package func begins(with bytes: [UInt8]) -> Bool {
        guard let place = try? found(), case .file = place.entry, let file = FileHandle(forReadingAtPath: place.path)
        else { return false }
        defer { try? file.close() }
        return (try? file.read(upToCount: bytes.count)).flatMap(\.self).map(Array.init) == bytes
    }

    /// Returns a path beside the target for a file that ``adopt(_:mode:_:)`` then puts in its place. It does not exist yet.
    package func draftPath() throws(OutputFault) -> String { try found().draftPath }

    /// Puts a finished file from the target's folder in the target's place. A file there is replaced, and its owner and
    /// mode are kept. Throws if the target is a stream, or has become one.
    package func adopt(_ draft: String, mode: mode_t = 0o600, _ privacy: Privacy = .asFound) throws(OutputFault) {
        let place = try found()
        switch place.entry {
        case .stream: throw OutputFault(named, EEXIST)
        case .nothing:
            chmod(draft, mode)
            try Self.place(draft, at: place.path, named: named)
        case .file(let facts):
            // Only the administrator can give a file away. The person has confirmed the replacement all the same.
            _ = chown(draft, facts.owner, facts.group)
            chmod(draft, Self.mode(facts.mode, privacy))
            guard rename(draft, place.path) == 0 else { throw OutputFault(named, errno) }
        }
        Self.flush(Self.folder(of: place.path))
    }

    private func draft(_ place: OutputPlace, facts: FileFacts?, mode: mode_t) throws(OutputFault) -> OutputWriter {
        let path = place.draftPath
        let file: Int32
        do {
            file = try Self.open(path, O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
        } catch {
            throw OutputFault(named, error.code)
        }
        if let facts, !Self.keep(facts, file) {
            close(file)
            unlink(path)
            throw OutputFault(named, EPERM)
        }
        return OutputWriter(self, .draft(path, target: place.path, facts, mode: mode), file)
    }

    private static func keep(_ facts: FileFacts, _ file: Int32) -> Bool {
        var own = stat()
        guard fstat(file, &own) == 0 else { return false }
        if own.st_uid == facts.owner, own.st_gid == facts.group { return true }
        return fchown(file, facts.owner, facts.group) == 0
    }

    private static func mode(_ mode: mode_t, _ privacy: Privacy) -> mode_t {
        privacy == .closedToOthers ? mode & ~0o007 : mode
    }

    /// Follows links in the last part of the path, as `open` does.
    private func found() throws(OutputFault) -> OutputPlace {
        var path = named
        for _ in 0..<Self.linksMax {
            if let number = Self.descriptor(path) { return OutputPlace(path: path, entry: .stream, descriptor: number) }
            // Links of /proc are no paths: the kernel follows them, and what is behind them belongs to a process.
            guard !path.hasPrefix("/proc/"),
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path)
            else { return OutputPlace(path: path, entry: try facts(path)) }
            path = target.hasPrefix("/") ? target : Self.folder(of: path) + "/" + target
        }
        throw OutputFault(named, ELOOP)
    }

    private func facts(_ path: String) throws(OutputFault) -> Entry {
        var facts = stat()
        guard stat(path, &facts) == 0 else {
            guard errno == ENOENT else { throw OutputFault(named, errno) }
            return .nothing
        }
        switch facts.st_mode & S_IFMT {
        case S_IFDIR: throw OutputFault(named, EISDIR)
        case S_IFREG where !path.hasPrefix("/proc/"):
            return .file(
                FileFacts(
                    mode: facts.st_mode & 0o7777, owner: facts.st_uid, group: facts.st_gid,
                    names: UInt64(facts.st_nlink)))
        default: return .stream
        }
    }

    /// The number of a descriptor of this process, where the path names one.
    private static func descriptor(_ path: String) -> Int32? {
        for prefix in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(prefix) {
            return Int32(path.dropFirst(prefix.count))
        }
        return nil
    }

    /// The folder that the last part of a path is in.
    package static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    static func open(_ path: String, _ flags: Int32, _ mode: mode_t) throws(OutputFault) -> Int32 {
        while true {
            let file = Foundation.open(path, O_WRONLY | O_CLOEXEC | flags, mode)
            if file >= 0 { return file }
            guard errno == EINTR else { throw OutputFault(path, errno) }
        }
    }

    /// Gives a finished file its name. A file that was made there meanwhile is not replaced.
    static func place(_ draft: String, at path: String, named: String) throws(OutputFault) {
        if link(draft, path) == 0 {
            unlink(draft)
            return
        }
        var facts = stat()
        // File systems without hard links refuse every link.
        guard errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS, lstat(path, &facts) != 0, errno == ENOENT,
            rename(draft, path) == 0
        else { throw OutputFault(named, errno) }
    }

    /// Puts the names in a folder on disk.
    static func flush(_ folder: String) {
        let file = Foundation.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { return }
        fsync(file)
        close(file)
    }

    /// Cuts a name so that more fits behind it.
    static func shortened(_ name: Substring) -> String {
        var name = name
        while name.utf8.count > nameBytesMax { name.removeLast() }
        return String(name)
    }
}

/// A path behind all links, with what is there.
struct OutputPlace {
    var path: String
    var entry: OutputPath.Entry
    /// Set where the path names a descriptor of this process.
    var descriptor: Int32?

    /// In the same folder, so that it can be renamed.
    var draftPath: String {
        let name = path.split(separator: "/").last ?? ""
        let number = String(UInt32.random(in: 0 ... .max), radix: 16)
        return "\(OutputPath.folder(of: path))/.\(OutputPath.shortened(name)).\(number).part"
    }

    func openStream(_ named: String) throws(OutputFault) -> Int32 {
        do throws(OutputFault) {
            guard let descriptor else { return try OutputPath.open(path, 0, 0) }
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            guard copy >= 0 else { throw OutputFault(path, errno) }
            return copy
        } catch {
            throw OutputFault(named, error.code)
        }
    }
}

/// Why a path cannot be written.
package struct OutputFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The path as the person wrote it.
    package let path: String
    /// The system's `errno`.
    package let code: Int32

    init(_ path: String, _ code: Int32) {
        self.path = path
        self.code = code
    }

    /// In the system's words.
    package var description: String { String(cString: strerror(code)) }

    /// The reader of a pipe has closed it.
    package var isReaderGone: Bool { code == EPIPE }

    /// The disk failed or is full, in contrast to a path that cannot be made.
    package var isOfDisk: Bool { [ENOSPC, EDQUOT, EFBIG, EIO].contains(code) }
}
