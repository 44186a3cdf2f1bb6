import Foundation
package import Model
package import Senders

/// The time at which `verify` last found that every promise holds. It is stored as the modification time of an empty
/// file in the senders' folder, because `verify` writes nothing into the store.
package enum LastGoodVerify {
    private static func path(_ senders: SenderFolder) -> String { "\(senders.path)/verified" }

    /// Records the current time. Does nothing if this user may not write to the senders' folder, or if this machine
    /// has no such folder because it never sent anything.
    package static func record(_ senders: SenderFolder) {
        let path = path(senders)
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return }
        defer { close(file) }
        futimens(file, nil)
        // If this is root, give the file to the folder's owner, so that the service can write the file later.
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
