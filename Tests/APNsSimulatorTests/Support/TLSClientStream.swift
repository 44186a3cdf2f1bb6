import COpenSSL
import Foundation
import Testing

/// A blocking TLS connection to a port of this machine, or the bare TCP one below it.
final class TLSClientStream {
    private static let readLimitSeconds = 20

    private let descriptor: Int32
    private let context: OpaquePointer
    private let handle: OpaquePointer

    /// `protocols` is what ALPN offers; empty: no ALPN.
    init(
        port: Int, trusting authorityPath: String, certificate: (path: String, keyPath: String)? = nil,
        protocols: [String] = ["h2"], maximumVersion: Int32? = nil
    ) throws {
        // A peer that has closed is an error to see, not the end of the tests.
        signal(SIGPIPE, SIG_IGN)
        descriptor = try Self.connect(to: port)
        context = try #require(SSL_CTX_new(TLS_client_method()))
        try #require(SSL_CTX_load_verify_locations(context, authorityPath, nil) == 1)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        if let certificate {
            try #require(SSL_CTX_use_certificate_file(context, certificate.path, SSL_FILETYPE_PEM) == 1)
            try #require(SSL_CTX_use_PrivateKey_file(context, certificate.keyPath, SSL_FILETYPE_PEM) == 1)
        }
        if let maximumVersion {
            SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(maximumVersion), nil)
            // Old versions need a lower level of security to be offered at all.
            SSL_CTX_set_security_level(context, 0)
        }
        if !protocols.isEmpty {
            let offered = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
            SSL_CTX_set_alpn_protos(context, offered, UInt32(offered.count))
        }
        handle = try #require(SSL_new(context))
        SSL_set_fd(handle, descriptor)
        SSL_set1_host(handle, "localhost")
        ERR_clear_error()
        guard SSL_connect(handle) == 1 else { throw TestClient.Failure.noHandshake }
    }

    deinit {
        SSL_free(handle)
        SSL_CTX_free(context)
        close(descriptor)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        ERR_clear_error()
        guard SSL_write(handle, bytes.baseAddress, Int32(bytes.count)) == Int32(bytes.count) else {
            throw TestClient.Failure.ended
        }
    }

    /// At least one byte; nil when the peer has ended the connection, or is silent for long.
    func read() throws -> [UInt8]? {
        var room = [UInt8](repeating: 0, count: 32 * 1024)
        ERR_clear_error()
        let count = SSL_read(handle, &room, Int32(room.count))
        guard count > 0 else { return nil }
        return Array(room.prefix(Int(count)))
    }

    func isQuiet(forMilliseconds milliseconds: Int32) throws -> Bool {
        guard SSL_pending(handle) == 0 else { return false }
        var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&wait, 1, milliseconds) == 0
    }

    /// A bare TCP connection that gives up reading after a while.
    static func connect(to port: Int) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(descriptor >= 0)
        var limit = timeval(tv_sec: readLimitSeconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        // Each frame is a write of its own here: none may wait for the acknowledgement of the one before.
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else {
            close(descriptor)
            throw TestClient.Failure.ended
        }
        return descriptor
    }
}
