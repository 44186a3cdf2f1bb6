import Foundation
import Synchronization

/// A server that accepts connections and never responds, as a host does that has just died behind a firewall.
package final class SilentServer: Sendable {
    private let directory: TemporaryDirectory
    private let listener: Int32
    private let clients = Mutex<[Int32]>([])

    /// The folder of its socket, as a host of a URL.
    package var folder: String { directory.path }

    /// The number of connections that were opened.
    package var connections: Int { clients.withLock { $0.count } }

    package init() throws {
        directory = try TemporaryDirectory()
        listener = try PostgresSocket.listen(directory.file(".s.PGSQL.5432"))
        Thread { [listener, weak self] in
            defer { close(listener) }
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                _ = fcntl(client, F_SETFD, FD_CLOEXEC)
                self?.clients.withLock { $0.append(client) }
            }
        }.start()
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        for client in clients.withLock({ $0 }) { close(client) }
    }
}
