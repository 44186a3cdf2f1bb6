import COpenSSL
import Foundation
import Synchronization
import Testing
import TransportContract
import TestSupport

/// A TLS server that says just what a test makes it say, to one connection after the other, on a thread of its own.
final class ScriptedServer: Sendable {
    typealias Script = @Sendable (ScriptedConnection) throws -> Void

    struct Options: Sendable {
        /// What ALPN answers; nil: the extension is passed over.
        var alpn: String? = "h2"
        var subjectAltName = "IP:127.0.0.1,DNS:localhost"
        /// For other bytes than TLS.
        var speaksTLS: @Sendable (_ connection: Int) -> Bool = { _ in true }
        /// Called when a client has connected and before it is answered.
        var beforeTLS: @Sendable () -> Void = {}
    }

    private struct State {
        var connections = 0
        var isStopping = false
        var faults: [String] = []
    }

    let port: Int
    /// To be trusted by the client.
    let authorityPath: String
    private let listener: Int32
    private let directory: TemporaryDirectory
    private let state = Mutex(State())
    private let ended = DispatchSemaphore(value: 0)

    init(_ options: Options = Options(), script: @escaping Script) throws {
        directory = try TemporaryDirectory()
        authorityPath = directory.file("server.pem")
        try Self.writeIdentity(options.subjectAltName, to: directory)
        (listener, port) = try Self.listen()
        let context = try Self.context(options, directory)
        signal(SIGPIPE, SIG_IGN)
        Thread.detachNewThread { [self] in
            serve(context, options, script)
            SSL_CTX_free(context.handle)
            ended.signal()
        }
    }

    /// What the script threw; a client that leaves early is no fault.
    var faults: [String] { state.withLock { $0.faults } }
    var connections: Int { state.withLock { $0.connections } }

    /// Ends after the connection at hand. A script that does not end is a failure of its test: it must not hold one of the
    /// threads that tests share for ever.
    func stop(sourceLocation: SourceLocation = #_sourceLocation) {
        state.withLock { $0.isStopping = true }
        shutdown(listener, Int32(SHUT_RDWR))
        guard ended.wait(timeout: .now() + Self.scriptEndsWithin) == .success else {
            Issue.record("the script of a server did not end", sourceLocation: sourceLocation)
            return
        }
        close(listener)
    }

    /// In seconds: longer than a connection waits for its client.
    private static let scriptEndsWithin = 150.0

    private func serve(_ context: Context, _ options: Options, _ script: Script) {
        while true {
            let socket = accept(listener, nil, nil)
            let number = state.withLock { state in
                if socket >= 0 { state.connections += 1 }
                return state.isStopping ? nil : state.connections
            }
            guard socket >= 0, let number else {
                if socket >= 0 { close(socket) }
                return
            }
            options.beforeTLS()
            let connection = ScriptedConnection(
                socket: socket, context: options.speaksTLS(number) ? context.handle : nil, number: number)
            guard let connection else { continue }
            do {
                try script(connection)
            } catch is ScriptedConnection.Ended {
            } catch {
                state.withLock { $0.faults.append("\(error)") }
            }
        }
    }

    private typealias Identity = (key: String, certificate: String)

    /// In PEM, made once for each subject: a process for each server takes longer than its test, and holds one of the threads
    /// that tests share.
    private static let identities = Mutex<[String: Identity]>([:])

    private static func writeIdentity(_ subjectAltName: String, to directory: TemporaryDirectory) throws {
        let (key, certificate) = (directory.file("server.key"), directory.file("server.pem"))
        let identity = try identities.withLock { identities -> Identity in
            if let known = identities[subjectAltName] { return known }
            try OpenSSLCommand.run(
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3", "-subj",
                "/CN=scripted", "-addext", "subjectAltName=\(subjectAltName)", "-keyout", key, "-out", certificate)
            let made = (key: try directory.read("server.key"), certificate: try directory.read("server.pem"))
            identities[subjectAltName] = made
            return made
        }
        try directory.write(identity.key, to: "server.key")
        try directory.write(identity.certificate, to: "server.pem")
    }

    private struct Context: @unchecked Sendable {
        let handle: OpaquePointer
    }

    private static func context(_ options: Options, _ directory: TemporaryDirectory) throws -> Context {
        let context = try #require(SSL_CTX_new(TLS_server_method()))
        try #require(SSL_CTX_use_certificate_chain_file(context, directory.file("server.pem")) == 1)
        try #require(
            SSL_CTX_use_PrivateKey_file(context, directory.file("server.key"), SSL_FILETYPE_PEM) == 1)
        if options.alpn == "h2" {
            SSL_CTX_set_alpn_select_cb(
                context,
                { _, chosen, length, offered, _, _ in
                    // Our client offers h2 and nothing else.
                    chosen?.pointee = offered.map { $0 + 1 }
                    length?.pointee = 2
                    return SSL_TLSEXT_ERR_OK
                }, nil)
        }
        return Context(handle: context)
    }

    private static func listen() throws -> (Int32, Int) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(listener >= 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size) == 0 && Foundation.listen(listener, 64) == 0
                    ? getsockname(listener, address, &size) : -1
            }
        }
        try #require(code == 0)
        return (listener, Int(UInt16(bigEndian: address.sin_port)))
    }
}
