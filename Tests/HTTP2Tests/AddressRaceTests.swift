import CNGHTTP2
import Glibc
import Testing

@testable import HTTP2

@Suite(.timeLimit(.minutes(10)))
struct AddressRaceTests {
    /// A listening socket on 127.0.0.1, and nobody on the other loopback addresses of that port.
    private final class Listener {
        let socket: Int32
        let port: Int

        init() throws {
            let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let code = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    bind(socket, address, size) == 0 && listen(socket, 4) == 0
                        ? getsockname(socket, address, &size) : -1
                }
            }
            try #require(code == 0)
            self.socket = socket
            port = Int(UInt16(bigEndian: address.sin_port))
        }

        deinit { close(socket) }
    }

    private func race(_ hosts: [String], port: Int) async throws -> (isConnected: Bool, faults: String) {
        let addresses = try hosts.map { try #require(SocketAddress.written(host: $0, port: port)) }
        let loop = try EventLoop(named: "race")
        try loop.start()
        defer { loop.stop() }
        return await withCheckedContinuation { continuation in
            loop.submit {
                AddressRace(addresses, unacknowledgedMaxMs: 1000, loop: loop) { socket, faults in
                    if let socket { close(socket) }
                    continuation.resume(returning: (socket != nil, faults))
                }.start()
            }
        }
    }

    @Test func `addresses that refuse are passed over`() async throws {
        let listener = try Listener()
        let end = try await race(["127.0.0.3", "127.0.0.2", "127.0.0.1"], port: listener.port)
        #expect(end.isConnected)
    }

    @Test func `when nobody answers, every address says why`() async throws {
        let listener = try Listener()
        let end = try await race(["127.0.0.3", "127.0.0.2"], port: listener.port)
        #expect(!end.isConnected)
        #expect(end.faults == "127.0.0.3: Connection refused; 127.0.0.2: Connection refused")
    }

    @Test func `no address is no connection`() async throws {
        #expect(try await race([], port: 1).isConnected == false)
    }
}
