import Foundation
package import Model
package import Senders

/// The time at which `verify` last found that every promise holds. It is the time of an empty file beside the senders,
/// because `verify` writes nothing into the store.
package enum LastGoodVerify {
    private static func path(_ senders: SenderFolder) -> String { "\(senders.path)/verified" }

    /// Does nothing if this user may not write there, or if nothing was ever sent from this machine.
    package static func record(_ senders: SenderFolder) {
        let path = path(senders)
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return }
        defer { close(file) }
        futimens(file, nil)
        // Root leaves no file that the service could not write.
        var folder = stat()
        if geteuid() == 0, stat(senders.path, &folder) == 0 { _ = fchown(file, folder.st_uid, folder.st_gid) }
    }

    /// Returns that time, or `nil` if this machine knows of none.
    package static func moment(_ senders: SenderFolder) -> Timestamp? {
        var facts = stat()
        guard stat(path(senders), &facts) == 0 else { return nil }
        return Timestamp(milliseconds: Int64(facts.st_mtim.tv_sec) * 1000 + Int64(facts.st_mtim.tv_nsec) / 1_000_000)
    }
}
