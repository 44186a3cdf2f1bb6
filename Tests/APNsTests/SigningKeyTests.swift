import Foundation
import Testing
import TransportContract

@testable import APNs
import TestSupport

@Suite(.timeLimit(.minutes(10)))
struct SigningKeyTests {
    struct BadKey: Sendable, CustomTestStringConvertible {
        var name: String
        /// Arguments of `openssl` that make the file, the path last; or nil and the text.
        var command: [String] = []
        var text: String?
        var says: String
        var testDescription: String { name }
    }

    static let badKeys = [
        BadKey(
            name: "an RSA key", command: ["genpkey", "-algorithm", "RSA", "-out"], says: "of kind RSA; APNs accepts"),
        BadKey(
            name: "another curve",
            command: ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384", "-out"],
            says: "of kind EC secp384r1"),
        BadKey(name: "Ed25519", command: ["genpkey", "-algorithm", "ED25519", "-out"], says: "of kind ED25519"),
        BadKey(
            name: "an encrypted key",
            command: [
                "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-aes256", "-pass", "pass:secret",
                "-out",
            ],
            says: "encrypted with a passphrase; store it without one"),
        BadKey(name: "an empty file", text: "", says: "an empty file, not a private key"),
        BadKey(name: "no PEM", text: "hello", says: "not PEM text"),
        BadKey(
            name: "no first line", text: "MIGHAgEAMBMGBy\n-----END PRIVATE KEY-----\n",
            says: "no line such as -----BEGIN PRIVATE KEY-----"),
        BadKey(
            name: "no last line", text: "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGBy\n",
            says: "is damaged: the line -----END PRIVATE KEY----- is missing"),
        BadKey(
            name: "a certificate", text: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            says: "is a certificate, not a private key; use the AuthKey_<KeyID>.p8"),
        BadKey(
            name: "a public key", text: "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            says: "is a public key, not a private key"),
        BadKey(
            name: "a cut key", text: "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGBy\n-----END PRIVATE KEY-----\n",
            says: "is damaged"),
    ]

    @Test(arguments: badKeys)
    func `a file that is no usable key is refused with what it is and what to do`(row: BadKey) throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("AuthKey_ABC123DEFG.p8")
        if let text = row.text {
            try directory.write(text, to: "AuthKey_ABC123DEFG.p8")
        } else {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = ["openssl"] + row.command + [path]
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitForEnd()
        }
        let error = #expect(throws: CredentialError.self) { try SigningKey(path: path) }
        let description = error?.description ?? ""
        #expect(description.contains(row.says), "\(description)")
        #expect(description.contains(path))
    }

    @Test func `a missing file is named with the system's reason`() throws {
        let path = "/nonexistent/AuthKey_ABC123DEFG.p8"
        let expected = CredentialError.unreadable(path: path, reason: "No such file or directory")
        #expect(throws: expected) { try SigningKey(path: path) }
    }

    @Test func `a directory is refused`() throws {
        let directory = try TemporaryDirectory()
        let expected = CredentialError.unreadable(path: directory.path, reason: "it is not a regular file")
        #expect(throws: expected) { try SigningKey(path: directory.path) }
    }

    @Test(arguments: [(0o600, false), (0o640, false), (0o644, true), (0o604, true)])
    func `a key file that anybody may read is noticed`(mode: Int, isReadable: Bool) throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("key.p8")
        try OpenSSLCommand.makeSigningKey(at: path)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        #expect(try SigningKey(path: path).isReadableByOthers == isReadable)
    }

    @Test func `200 signatures are 64 bytes each and verify with the openssl command`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("key.p8")
        try OpenSSLCommand.makeSigningKey(at: path)
        try OpenSSLCommand.run("pkey", "-in", path, "-pubout", "-out", directory.file("public.pem"))
        let key = try SigningKey(path: path)
        for number in 0..<200 {
            let message = "push \(number)"
            let signature = try key.signature(over: Array(message.utf8))
            #expect(signature.count == 64)
            // One in ten by the slow way; over the runs these meet short halves too.
            guard number % 10 == 0 else { continue }
            try directory.write(message, to: "message")
            try Data(DER.signature(raw: signature)).write(to: URL(fileURLWithPath: directory.file("signature")))
            let output = try OpenSSLCommand.run(
                "dgst", "-sha256", "-verify", directory.file("public.pem"), "-signature", directory.file("signature"),
                directory.file("message"))
            #expect(output.contains("Verified OK"))
        }
    }

    @Test func `a key given as text signs like one from a file`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("key.p8")
        try OpenSSLCommand.makeSigningKey(at: path)
        let key = try SigningKey(pem: String(contentsOfFile: path, encoding: .utf8))
        #expect(try key.signature(over: [1, 2, 3]).count == 64)
        #expect(!key.isReadableByOthers)
    }
}
