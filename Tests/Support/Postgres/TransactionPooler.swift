import Foundation
import Synchronization

/// A pooler in transaction mode, between clients and a cluster's Unix socket. Each transaction gets the least recently
/// used of a few connections, so that no session state survives a transaction.
package final class TransactionPooler: Sendable {
    private static let connectionsMax = 4

    private struct Pool {
        /// The server's response to a new connection.
        var greeting: [UInt8] = []
        var free: [Int32] = []
        var count = 0
    }

    private let directory: TemporaryDirectory
    private let listener: Int32
    private let target: String
    /// The pools, by the startup message of their clients.
    private let pools = Mutex<[[UInt8]: Pool]>([:])
    private let taken = Atomic(0)

    package init(to cluster: PostgresCluster) throws {
        directory = try TemporaryDirectory()
        target = "\(cluster.folder)/.s.PGSQL.5432"
        listener = try PostgresSocket.listen(directory.file(".s.PGSQL.5432"))
        Thread { [listener, weak self] in
            defer { close(listener) }
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                _ = fcntl(client, F_SETFD, FD_CLOEXEC)
                Thread { [weak self] in
                    self?.serve(client)
                    close(client)
                }.start()
            }
        }.start()
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        for pool in pools.withLock({ Array($0.values) }) { for server in pool.free { close(server) } }
    }

    package func url(_ database: String) -> String { "postgres://postgres@/\(database)?host=\(directory.path)" }

    /// The number of transactions that got a connection.
    package var transactions: Int { taken.load(ordering: .relaxed) }

    private func serve(_ client: Int32) {
        guard let startup = PostgresSocket.startup(client), let greeting = greeting(startup),
            PostgresSocket.write(greeting, to: client)
        else { return }
        while let first = PostgresSocket.message(client), first.first != UInt8(ascii: "X") {
            guard let server = take(startup) else { return }
            taken.add(1, ordering: .relaxed)
            let isWhole = Exchange(client: client, server: server).run(first)
            give(isWhole ? server : nil, startup)
            if !isWhole {
                shutdown(server, Int32(SHUT_RDWR))
                close(server)
                return
            }
        }
    }

    private func greeting(_ startup: [UInt8]) -> [UInt8]? {
        if let known = pools.withLock({ $0[startup]?.greeting }), !known.isEmpty { return known }
        guard let (server, greeting) = open(startup) else { return nil }
        pools.withLock { pools in
            pools[startup, default: Pool()].greeting = greeting
            pools[startup]?.count += 1
            pools[startup]?.free.append(server)
        }
        return greeting
    }

    private func take(_ startup: [UInt8]) -> Int32? {
        while true {
            let (server, mayOpen) = pools.withLock { pools -> (Int32?, Bool) in
                guard var pool = pools[startup] else { return (nil, false) }
                defer { pools[startup] = pool }
                // First opens as many connections as allowed, so that the next transaction gets another one.
                if pool.count < Self.connectionsMax {
                    pool.count += 1
                    return (nil, true)
                }
                return (pool.free.isEmpty ? nil : pool.free.removeFirst(), false)
            }
            if let server { return server }
            if mayOpen { return open(startup)?.server }
            usleep(500)
        }
    }

    private func give(_ server: Int32?, _ startup: [UInt8]) {
        pools.withLock { pools in
            if let server { pools[startup]?.free.append(server) } else { pools[startup]?.count -= 1 }
        }
    }

    private func open(_ startup: [UInt8]) -> (server: Int32, greeting: [UInt8])? {
        guard let server = PostgresSocket.connect(target) else { return nil }
        var greeting: [UInt8] = []
        guard PostgresSocket.write(startup, to: server) else { return nil }
        while let message = PostgresSocket.message(server) {
            greeting += message
            if message[0] == UInt8(ascii: "Z") { return (server, greeting) }
        }
        close(server)
        return nil
    }

    /// Gives a client one connection until its transaction is over.
    private final class Exchange: Sendable {
        private struct State {
            /// The number of outstanding responses that end with ReadyForQuery.
            var awaited = 0
            /// Whether a message was sent without a Sync after it.
            var isOpen = false
            var isInTransaction = false
            /// Whether a message of the client has arrived that belongs to this transaction.
            var isReading = false
            var hasFailed = false
            var isOver: Bool { awaited == 0 && !isOpen && !isInTransaction && !isReading }
        }

        private let client: Int32
        private let server: Int32
        private let state = Mutex(State())

        init(client: Int32, server: Int32) {
            self.client = client
            self.server = server
        }

        /// Returns `false` if the client or the server is gone.
        func run(_ first: [UInt8]) -> Bool {
            note(first)
            // Both directions run at the same time, because neither side reads while it cannot write.
            Thread { [self] in answer() }.start()
            var message = first
            while PostgresSocket.write(message, to: server) {
                guard let next = nextMessage() else { break }
                guard !next.isEmpty else { return true }
                note(next)
                message = next
            }
            state.withLock { $0.hasFailed = true }
            shutdown(server, Int32(SHUT_RDWR))
            return false
        }

        private func note(_ message: [UInt8]) {
            state.withLock { state in
                state.isReading = false
                switch message[0] {
                case UInt8(ascii: "Q"), UInt8(ascii: "S"): (state.awaited, state.isOpen) = (state.awaited + 1, false)
                case UInt8(ascii: "d"), UInt8(ascii: "c"), UInt8(ascii: "f"): break
                default: state.isOpen = true
                }
            }
        }

        /// Returns the client's next message. It is empty once the transaction is over, and `nil` if a side is gone.
        private func nextMessage() -> [UInt8]? {
            while true {
                var wanted = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
                let isThere = poll(&wanted, 1, 1) > 0
                let (isOver, hasFailed) = state.withLock { state in
                    state.isReading = isThere && !state.isOver
                    return (state.isOver, state.hasFailed)
                }
                if hasFailed { return nil }
                if isOver { return [] }
                if isThere { return PostgresSocket.message(client) }
            }
        }

        private func answer() {
            while let message = PostgresSocket.message(server) {
                // The message is forwarded first. What the client sends next belongs to the next transaction.
                guard PostgresSocket.write(message, to: client) else { break }
                guard message[0] == UInt8(ascii: "Z") else { continue }
                let isOver = state.withLock { state in
                    state.awaited -= 1
                    state.isInTransaction = message[5] != UInt8(ascii: "I")
                    return state.isOver
                }
                if isOver { return }
            }
            state.withLock { $0.hasFailed = true }
        }
    }
}

/// Reads and writes the messages of a PostgreSQL connection.
enum PostgresSocket {
    static func listen(_ path: String) throws -> Int32 {
        let file = make()
        guard withAddress(path, { bind(file, $0, $1) }) == 0, Glibc.listen(file, 64) == 0 else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
        return file
    }

    static func connect(_ path: String) -> Int32? {
        let file = make()
        if withAddress(path, { Glibc.connect(file, $0, $1) }) == 0 { return file }
        close(file)
        return nil
    }

    /// Returns the first message of a client, which has no type. Returns `nil` for a cancel request and at the end.
    static func startup(_ file: Int32) -> [UInt8]? {
        while let message = sized(file, []) {
            switch message.count < 8 ? 0 : number(message[4..<8]) {
            case 80_877_103, 80_877_104: if !write([UInt8(ascii: "N")], to: file) { return nil }
            case 80_877_102: return nil
            default: return message
            }
        }
        return nil
    }

    /// Returns a message with its type, length and contents, or `nil` at the end.
    static func message(_ file: Int32) -> [UInt8]? { read(file, 1).flatMap { sized(file, $0) } }

    static func write(_ bytes: [UInt8], to file: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let more = bytes[sent...].withUnsafeBytes { send(file, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard more > 0 else { return false }
            sent += more
        }
        return true
    }

    private static func sized(_ file: Int32, _ head: [UInt8]) -> [UInt8]? {
        guard let length = read(file, 4), let rest = read(file, number(length[...]) - 4) else { return nil }
        return head + length + rest
    }

    private static func read(_ file: Int32, _ count: Int) -> [UInt8]? {
        guard count >= 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let more = bytes[done...].withUnsafeMutableBytes { recv(file, $0.baseAddress, $0.count, 0) }
            guard more > 0 else { return nil }
            done += more
        }
        return bytes
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    private static func make() -> Int32 {
        socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
