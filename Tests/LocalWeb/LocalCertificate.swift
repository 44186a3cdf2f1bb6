import COpenSSL
import Foundation

/// A certificate for 127.0.0.1 that nobody trusts but who is told to.
package final class LocalCertificate: Sendable {
    /// The file (PEM) to trust.
    package let path: String
    private let folder: URL
    /// Counts its own references; any thread may make sessions of it.
    private nonisolated(unsafe) let context: OpaquePointer

    package struct Failed: Error {}

    package init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "fanfare-web-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        path = folder.appending(path: "certificate.pem").path
        let openssl = Process()
        openssl.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        openssl.arguments = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out",
            "certificate.pem",
        ]
        openssl.currentDirectoryURL = folder
        openssl.standardError = FileHandle.nullDevice
        try openssl.run()
        openssl.waitUntilExit()
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw Failed() }
        self.context = context
        let key = folder.appending(path: "key.pem").path
        guard SSL_CTX_use_certificate_file(context, path, SSL_FILETYPE_PEM) == 1,
            SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1
        else { throw Failed() }
    }

    deinit {
        SSL_CTX_free(context)
        try? FileManager.default.removeItem(at: folder)
    }

    func session(on file: Int32) -> OpaquePointer? {
        guard let tls = SSL_new(context) else { return nil }
        SSL_set_fd(tls, file)
        return tls
    }
}
