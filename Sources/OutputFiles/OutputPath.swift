package import Foundation

/// A path that a person named for output. All writes to such a path go through this type.
///
/// - A regular file is replaced once its new content is complete. The new file has the owner and the mode of the old
///   one.
/// - A link is followed: its target gets the content, and the link stays.
/// - A device, a FIFO or a descriptor (`/dev/null`, `/dev/stdout`) is written to directly. It is never removed or
///   replaced.
package struct OutputPath: Hashable, Sendable {
    /// The access of other users to the file afterwards.
    package enum Privacy: Hashable, Sendable {
        /// A new file is readable by its owner only. An existing file keeps its mode.
        case asFound
        /// The content contains tokens, so an existing file is also closed to other users. Its group keeps its rights.
        case closedToOthers
    }

    /// The target of the path after following all links.
    package enum Entry: Hashable, Sendable {
        case nothing
        case file(FileFacts)
        /// A device, a FIFO, a socket or a descriptor of this process.
        case stream
    }

    /// The properties that a file keeps when its content is replaced.
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

    /// Returns the current target. Throws for a folder, and for a cycle of links.
    package func entry() throws(OutputFault) -> Entry { try found().entry }

    /// Opens the path for writing. See ``OutputWriter/finish()``.
    ///
    /// - Parameters:
    ///   - mode: the mode of a new file.
    ///   - isWhole: whether the file appears or changes only when everything is written. Otherwise the file grows
    ///     during writing.
    package func open(
        mode: mode_t = 0o600, _ privacy: Privacy = .asFound, isWhole: Bool = true
    ) throws(OutputFault) -> OutputWriter {
        let place = try found()
        switch place.entry {
        case .stream: return OutputWriter(self, .stream, try place.openStream(named))
        case .nothing where isWhole: return try draft(place, facts: nil, mode: mode)
        case .nothing:
            let file = try Self.open(place.path, O_CREAT | O_EXCL | O_NOFOLLOW, mode)
            // The umask may have removed rights that the owner needs.
            fchmod(file, mode)
            return OutputWriter(self, .direct(place.path, isNew: true), file)
        case .file(let facts):
            let kept = Self.mode(facts.mode, privacy)
            // A file with several names, or with an owner that this user cannot restore, is overwritten in place.
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

    /// Returns whether a regular file exists and begins with these bytes.
    package func begins(with bytes: [UInt8]) -> Bool {
        guard let place = try? found(), case .file = place.entry, let file = FileHandle(forReadingAtPath: place.path)
        else { return false }
        defer { try? file.close() }
        return (try? file.read(upToCount: bytes.count)).flatMap(\.self).map(Array.init) == bytes
    }

    /// Whether a regular file exists there and is not empty.
    package var holdsData: Bool {
        guard let place = try? found(), case .file = place.entry else { return false }
        let facts = try? FileManager.default.attributesOfItem(atPath: place.path)
        return (facts?[.size] as? Int ?? 1) > 0
    }

    /// Creates an empty file beside the target, which ``adopt(_:mode:_:)`` then moves to the target's place. Removes
    /// the drafts of the target whose writers were killed.
    package func draft() throws(OutputFault) -> Draft { try draft(try found()) }

    /// Moves a finished file from the target's folder to the target's place. If it replaces a file, it takes over that
    /// file's owner and mode. Throws if the target is a stream, or has become one.
    package func adopt(_ draft: Draft, mode: mode_t = 0o600, _ privacy: Privacy = .asFound) throws(OutputFault) {
        let place = try found()
        switch place.entry {
        case .stream: throw OutputFault(named, EEXIST)
        case .nothing:
            chmod(draft.path, mode)
            try Self.place(draft.path, at: place.path, named: named)
        case .file(let facts):
            // Only the administrator can change a file's owner. A failure is ignored, because the person has confirmed
            // the replacement.
            _ = chown(draft.path, facts.owner, facts.group)
            chmod(draft.path, Self.mode(facts.mode, privacy))
            guard rename(draft.path, place.path) == 0 else { throw OutputFault(named, errno) }
        }
        Self.flush(Self.folder(of: place.path))
    }

    private func draft(_ place: OutputPlace) throws(OutputFault) -> Draft {
        do throws(OutputFault) {
            return try Draft(of: place.path)
        } catch {
            throw OutputFault(named, error.code)
        }
    }

    private func draft(_ place: OutputPlace, facts: FileFacts?, mode: mode_t) throws(OutputFault) -> OutputWriter {
        let draft = try draft(place)
        if let facts, !Self.keep(facts, draft.file) {
            draft.remove()
            throw OutputFault(named, EPERM)
        }
        // The writer closes its own descriptor before it moves the draft, which stays locked meanwhile.
        let file = fcntl(draft.file, F_DUPFD_CLOEXEC, 0)
        guard file >= 0 else {
            let code = errno
            draft.remove()
            throw OutputFault(named, code)
        }
        return OutputWriter(self, .draft(draft, target: place.path, facts, mode: mode), file)
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
            // Links in /proc are not real paths. The kernel follows them, and their targets belong to a process.
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

    /// Returns the number of a descriptor of this process, if the path names one.
    private static func descriptor(_ path: String) -> Int32? {
        for prefix in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(prefix) {
            return Int32(path.dropFirst(prefix.count))
        }
        return nil
    }

    /// Returns the folder of a path's last part.
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

    /// Renames a finished file. Throws if a file with the new name was created in the meantime.
    static func place(_ draft: String, at path: String, named: String) throws(OutputFault) {
        if link(draft, path) == 0 {
            unlink(draft)
            return
        }
        var facts = stat()
        // Some file systems do not support hard links.
        guard errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS, lstat(path, &facts) != 0, errno == ENOENT,
            rename(draft, path) == 0
        else { throw OutputFault(named, errno) }
    }

    /// Writes a folder's entries to disk.
    static func flush(_ folder: String) {
        let file = Foundation.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { return }
        fsync(file)
        close(file)
    }

    /// Shortens a name, so that there is room for a suffix.
    static func shortened(_ name: Substring) -> String {
        var name = name
        while name.utf8.count > nameBytesMax { name.unicodeScalars.removeLast() }
        return String(name)
    }
}

/// A path after following all links, with its current target.
struct OutputPlace {
    var path: String
    var entry: OutputPath.Entry
    /// The number of the descriptor, if the path names a descriptor of this process.
    var descriptor: Int32?

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

/// The reason why a path cannot be written.
package struct OutputFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The path as the person wrote it.
    package let path: String
    /// The system's `errno`.
    package let code: Int32

    init(_ path: String, _ code: Int32) {
        self.path = path
        self.code = code
    }

    /// The system's description of the error.
    package var description: String { String(cString: strerror(code)) }

    /// Whether the reader of a pipe has closed it.
    package var isReaderGone: Bool { code == EPIPE }

    /// Whether the disk failed or is full, in contrast to a path that cannot be created.
    package var isOfDisk: Bool { [ENOSPC, EDQUOT, EFBIG, EIO].contains(code) }
}
