/// The reason why a process cannot be a sender of its store, or its daemon.
package enum SenderError: Error, Hashable, CustomStringConvertible {
    /// There may be one daemon per store.
    case otherDaemon(String)
    /// The file system keeps no locks, so no process could tell which sender is alive.
    case noLocks(path: String, reason: String)
    /// The folder of the senders, or a file in it, cannot be read or written.
    case senderFolder(path: String, reason: String)
    /// The lock file cannot be read, and another process holds a lock on it.
    case lockFileDamaged(path: String)
    /// Another process holds the lock file's first byte: a starting sender for some milliseconds, a restore for longer.
    case lockFileBusy(path: String)
    /// The lock file of this sender was deleted or replaced.
    case registrationLost(path: String)
    /// A sender with a number of this folder sends heartbeats, but holds no lock here.
    case folderCopied(path: String, sender: String)

    package var description: String {
        switch self {
        case .otherDaemon(let owner): "another daemon uses this store (\(owner)); stop that daemon first"
        case .noLocks(let path, let reason):
            "the file system of \(path) does not support file locks (\(reason)), so Fanfare cannot tell which sender "
                + "is alive; put the store on a local file system, such as ext4 or xfs"
        case .senderFolder(let path, let reason):
            "\(path): \(reason); a sender needs this folder beside the store, and must be able to write to it"
        case .lockFileDamaged(let path):
            "\(path) is damaged while a process sends; stop every process that sends from this store, then delete the file"
        case .lockFileBusy(let path):
            "\(path): another process is restoring the store, or starting; wait until it is done, "
                + "or stop that process, then run the same command again"
        case .registrationLost(let path):
            "\(path) was deleted or replaced while this process was sending, so other senders treat it as dead; this "
                + "process has stopped. Run the same command again, and do not touch the folder while a process sends"
        case .folderCopied(let path, let sender):
            "the sender \(sender) has no lock in \(path), but still sends heartbeats: the folder is a copy of another "
                + "machine's. Stop the process that sends from this copy, then delete the folder; each machine creates "
                + "its own"
        }
    }
}
