import Foundation
import Glibc

/// The free space of a file system.
package struct DiskSpace: Hashable, Sendable {
    package let folder: String
    package let freeBytes: Int
    /// Whether no further file can be created, however much space there is.
    package let isWithoutFiles: Bool

    /// Returns `nil` if the system does not say.
    package init?(ofFolder folder: String) {
        var facts = statvfs()
        guard statvfs(folder, &facts) == 0 else { return nil }
        self.init(
            folder: folder, freeBytes: Int(clamping: UInt(facts.f_bavail) * UInt(facts.f_frsize)),
            isWithoutFiles: facts.f_files > 0 && facts.f_favail == 0)
    }

    /// The free space around a file, which need not exist.
    package init?(around path: String) {
        self.init(ofFolder: URL(fileURLWithPath: path).deletingLastPathComponent().path)
    }

    package init(folder: String, freeBytes: Int, isWithoutFiles: Bool = false) {
        self.folder = folder
        self.freeBytes = freeBytes
        self.isWithoutFiles = isWithoutFiles
    }

    /// Whether a file of some size cannot be written.
    package func isFull(for bytes: Int) -> Bool { freeBytes < bytes || isWithoutFiles }

    /// `12 kB free in /var/lib/fanfare`
    package var summary: String {
        let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)]
        // Four digits at most, so that little space is never shown as none.
        let unit = units.first { freeBytes >= 10 * $0.1 } ?? units[2]
        return "\(freeBytes / unit.1) \(unit.0) free in \(folder)" + (isWithoutFiles ? ", but no free inode" : "")
    }
}
