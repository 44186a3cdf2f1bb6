package import Foundation

/// Reads a file that a person wrote. Reading a named pipe, a socket or a terminal may wait for ever, and a device such
/// as `/dev/zero` never ends. Only regular files are therefore read, up to a limit.
package enum RegularFile {
    /// The reason for a failure, with advice. The text continues a sentence that begins with the file's name.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        package var what: String
        package var advice: String
        package var description: String { "\(what); \(advice)" }
        /// The description as part of a sentence that has already named the file. For example: `it is a folder; name a
        /// file inside it`.
        package var sentence: String { (what == Self.missing ? "there is " : "it ") + description }

        fileprivate static let missing = "no such file"
    }

    /// - Parameter takesPipes: whether pipes are allowed. Set it only for a file that a person names for this call,
    ///   such as `<(command)` in a shell.
    package static func read(
        _ path: String, bytesMax: Int = FileText.bytesMax, takesPipes: Bool = false
    ) throws(Fault) -> Data {
        var facts = stat()
        guard stat(path, &facts) == 0 else { throw unreadable() }
        // This check comes before the open, because opening a device may have an effect.
        try check(facts.st_mode, takesPipes: takesPipes)
        let isRegular = facts.st_mode & S_IFMT == S_IFREG
        let descriptor = Foundation.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (isRegular ? O_NONBLOCK : 0))
        guard descriptor >= 0 else { throw unreadable() }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // Check again, because another file may have replaced this one in the meantime.
        guard fstat(descriptor, &facts) == 0 else { throw unreadable() }
        try check(facts.st_mode, takesPipes: takesPipes)
        let data: Data
        do {
            data = try file.read(upToCount: bytesMax + 1) ?? Data()
        } catch {
            throw Fault(
                what: "cannot be read (\(error.localizedDescription))", advice: "check the disk and its permissions")
        }
        guard data.count <= bytesMax else {
            throw Fault(what: "is larger than \(bytesMax) bytes", advice: "make sure that it is the right file")
        }
        return data
    }

    private static func check(_ mode: mode_t, takesPipes: Bool) throws(Fault) {
        let kind: String
        switch mode & S_IFMT {
        case S_IFREG: return
        case S_IFIFO where takesPipes: return
        case S_IFDIR: throw Fault(what: "is a folder", advice: "name a file inside it")
        case S_IFIFO: kind = "a named pipe"
        case S_IFSOCK: kind = "a socket"
        case S_IFCHR, S_IFBLK: kind = "a device"
        default: kind = "not a regular file"
        }
        throw Fault(what: "is \(kind), and is not read", advice: "put a regular file in its place, or move it away")
    }

    /// Describes the failure of a system call.
    package static func unreadable(_ code: Int32 = errno) -> Fault {
        let what = "cannot be read (\(String(cString: strerror(code))))"
        return switch code {
        case ENOENT, ENOTDIR: Fault(what: Fault.missing, advice: "check the path")
        case EMFILE:
            Fault(
                what: what,
                advice: "this process has too many files open; raise LimitNOFILE= in the unit, or ulimit -n in a shell")
        case ENFILE:
            Fault(what: what, advice: "the machine has too many files open; close programs, or raise fs.file-max")
        case EACCES, EPERM: Fault(what: what, advice: "check its permissions")
        default: Fault(what: what, advice: "check the path and the disk")
        }
    }
}
