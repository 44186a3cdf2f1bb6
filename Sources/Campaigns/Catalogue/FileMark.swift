import Foundation
package import Model

/// A mark that distinguishes two versions of a file, without reading the file.
///
/// The mark of a symbolic link is that of its target. It includes the permissions, because a file that could not be
/// read may now be readable.
package struct FileMark: Hashable {
    /// The time at which this version of the file came to its place. For a symbolic link, this is the later of the
    /// times at which the link and its target were written.
    package let changedAt: Timestamp
    private let facts: [Int64]

    /// Returns `nil` if there is no such file.
    package init?(_ path: String) {
        var (target, entry) = (stat(), stat())
        guard stat(path, &target) == 0, lstat(path, &entry) == 0 else { return nil }
        changedAt = max(Timestamp(target.st_mtim), Timestamp(entry.st_mtim))
        facts = [
            Int64(truncatingIfNeeded: target.st_dev), Int64(truncatingIfNeeded: target.st_ino), Int64(target.st_mode),
            Int64(target.st_size), Int64(target.st_mtim.tv_sec), Int64(target.st_mtim.tv_nsec),
            Int64(target.st_ctim.tv_sec), Int64(target.st_ctim.tv_nsec),
        ]
    }
}

extension Timestamp {
    fileprivate init(_ time: timespec) {
        self = Timestamp(seconds: Int64(time.tv_sec)) + .milliseconds(Int64(time.tv_nsec) / 1_000_000)
    }
}
