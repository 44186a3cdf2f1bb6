import COpenSSL
import Foundation

/// A certificate for 127.0.0.1. Only clients that are configured to trust it do so.
package final class LocalCertificate: Sendable {
    /// The path of the certificate to trust (PEM).
    package let path: String
    private let directory: TemporaryDirectory
    /// The TLS context. It counts its own references, and any thread may create sessions with it.
    private nonisolated(unsafe) let context: OpaquePointer

    package struct Failed: Error {}

    package init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("certificate.pem")
        let key = directory.file("key.pem")
        try OpenSSLCommand.run(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj",
            "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", path)
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw Failed() }
        self.context = context
        guard SSL_CTX_use_certificate_file(context, path, SSL_FILETYPE_PEM) == 1,
            SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1
        else { throw Failed() }
    }

    deinit {
        SSL_CTX_free(context)
    }

    func session(on file: Int32) -> OpaquePointer? {
        guard let tls = SSL_new(context) else { return nil }
        SSL_set_fd(tls, file)
        return tls
    }
}

/// A connection with or without TLS. One thread uses it, and its last reference closes it.
final class ByteStream {
    private let file: Int32
    private let tls: OpaquePointer?

    /// Returns `nil` if the TLS handshake with the client fails.
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

    /// Returns the next bytes, or `nil` if the client has closed.
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
