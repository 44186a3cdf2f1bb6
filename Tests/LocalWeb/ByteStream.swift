import COpenSSL
import Foundation

/// A connection, plain or TLS; used by one thread, closed with its last reference.
final class ByteStream {
    private let file: Int32
    private let tls: OpaquePointer?

    /// Nil when the client does not agree with the TLS of the certificate.
    init?(_ file: Int32, _ certificate: LocalCertificate?) {
        self.file = file
        guard let certificate else {
            tls = nil
            return
        }
        tls = certificate.session(on: file)
        guard let tls, SSL_accept(tls) == 1 else { return nil }
    }

    deinit {
        if let tls {
            SSL_shutdown(tls)
            SSL_free(tls)
        }
        close(file)
    }

    /// Nil when the client has closed.
    func read() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = tls.map { Int(SSL_read($0, &buffer, Int32(buffer.count))) } ?? recv(file, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { part in
                tls.map { Int(SSL_write($0, part.baseAddress, Int32(part.count))) }
                    ?? send(file, part.baseAddress, part.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { return }
            rest = rest.dropFirst(sent)
        }
    }
}
