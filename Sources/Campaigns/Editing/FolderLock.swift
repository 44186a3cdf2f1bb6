import Foundation

/// A kernel lock on folders. It excludes other processes that write the folders' files, and ends with the process.
///
/// The lock is on the folder itself, so that a reader needs no right to write there.
struct FolderLock {
    enum Mode {
        case shared, exclusive
    }

    /// The number of tries for all folders, 1 ms apart: at least 2 s.
    private static let turnsMax = 2_000

    private let descriptors: [Int32]
    /// Whether the folders are locked. `false` if another process kept one for the whole wait.
    let isHeld: Bool
    /// Whether the file system has locks for folders. Some network file systems have none.
    let isSupported: Bool

    init(_ folders: [String], _ mode: Mode) {
        var open: [(file: Int32, device: UInt64, number: UInt64)] = []
        for folder in folders {
            let file = Foundation.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard file >= 0 else { continue }
            var facts = stat()
            // A folder that has two names is locked once.
            guard fstat(file, &facts) == 0,
                !open.contains(where: { $0.device == UInt64(facts.st_dev) && $0.number == UInt64(facts.st_ino) })
            else {
                close(file)
                continue
            }
            open.append((file, UInt64(facts.st_dev), UInt64(facts.st_ino)))
        }
        // All processes lock in the same order, so that none waits for another that waits for it.
        open.sort { ($0.device, $0.number) < ($1.device, $1.number) }
        descriptors = open.map(\.file)
        var turns = 0
        var isHeld = true
        var isSupported = true
        for file in descriptors {
            while isHeld, flock(file, (mode == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0 {
                guard errno == EWOULDBLOCK || errno == EINTR else {
                    isSupported = false
                    break
                }
                turns += 1
                isHeld = turns < Self.turnsMax
                usleep(1000)
            }
        }
        self.isHeld = isHeld
        self.isSupported = isSupported
    }

    func release() { for file in descriptors { close(file) } }
}
