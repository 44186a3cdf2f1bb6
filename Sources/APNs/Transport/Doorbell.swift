import CCurl
import Glibc

/// Wakes a lane's thread out of `epoll_wait`: an eventfd. Any thread may ring.
final class Doorbell: Sendable {
    /// Negative where the process has no file descriptor left.
    let file: Int32

    init() {
        file = fanfare_curl_bell_create()
    }

    deinit {
        if file >= 0 { close(file) }
    }

    func ring() {
        var one: UInt64 = 1
        // Fails only when it rings already, or there is no bell.
        _ = write(file, &one, MemoryLayout<UInt64>.size)
    }

    func silence() {
        var count: UInt64 = 0
        _ = read(file, &count, MemoryLayout<UInt64>.size)
    }
}
