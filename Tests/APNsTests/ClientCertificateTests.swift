import Foundation
import Testing
import TransportContract

@testable import APNs
import TestSupport

@Suite(.timeLimit(.minutes(10)))
struct ClientCertificateTests {
    static let day: Int64 = 86_400_000

    let directory: TemporaryDirectory
    /// Once the certificates are made: they are not valid before.
    let now: Int64

    init() throws {
        directory = try TemporaryDirectory()
        for name in ["push", "other"] {
            try OpenSSLCommand.run(
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-subj", "/UID=com.example.wendercast/CN=Apple Push Services", "-keyout",
                directory.file("\(name).key"), "-out", directory.file("\(name).pem"))
        }
        try OpenSSLCommand.run(
            "pkcs12", "-export", "-in", directory.file("push.pem"), "-inkey", directory.file("push.key"), "-out",
            directory.file("push.p12"), "-passout", "pass:secret")
        now = Int64(Date().timeIntervalSince1970 * 1000)
    }

    private func load(
        _ certificate: String, key: String? = nil, password: String? = nil, now: Int64? = nil
    ) throws -> ClientCertificate {
        try ClientCertificate(
            certificatePath: directory.file(certificate), privateKeyPath: key.map { directory.file($0) },
            password: password, now: now ?? self.now)
    }

    @Test func `a PEM pair loads and tells when it expires`() throws {
        let certificate = try load("push.pem", key: "push.key")
        #expect(certificate.form == .pem)
        #expect(abs(certificate.expiresAt - now - 30 * Self.day) < 120_000)
    }

    @Test func `a certificate names its topic, or several`() throws {
        #expect(try load("push.pem", key: "push.key").topics == ["com.example.wendercast"])
        func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] { [tag, UInt8(content.count)] + content }
        let names = ["com.example.wendercast", "com.example.wendercast.voip"]
        let list = names.flatMap { element(0x0C, Array($0.utf8)) + element(0x30, element(0x0C, Array("app".utf8))) }
        let value = element(0x30, list)
        #expect(AppleTopics.names(in: value) == names)
        #expect(AppleTopics.names(in: Array(value.dropLast())) == [] && AppleTopics.names(in: []) == [])
        let hex = value.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined(separator: ":")
        try OpenSSLCommand.run(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj",
            "/UID=com.example.wendercast/CN=Apple Push Services", "-addext", "\(AppleTopics.oid)=DER:\(hex)", "-keyout",
            directory.file("several.key"), "-out", directory.file("several.pem"))
        #expect(try load("several.pem", key: "several.key", now: now + 60_000).topics == names)
    }

    @Test func `certificate and key may stand in one PEM file`() throws {
        let both = try ["push.pem", "push.key"].map { try String(contentsOfFile: directory.file($0), encoding: .utf8) }
        try directory.write(both.joined(), to: "both.pem")
        #expect(try load("both.pem").privateKeyPath == nil)
    }

    @Test func `a PKCS12 file loads with its password`() throws {
        #expect(try load("push.p12", password: "secret").form == .archive)
    }

    @Test(arguments: [(String?.none, "needs a password"), ("hunter2", "is wrong")])
    func `a PKCS12 file is not opened without its password`(password: String?, says: String) throws {
        let error = #expect(throws: CredentialError.self) { try load("push.p12", password: password) }
        #expect(error?.description.contains(says) == true)
        #expect(error?.description.contains(password ?? "secret") == false)
    }

    @Test func `a key of another certificate is refused`() throws {
        let expected = CredentialError.keyMismatch(
            certificate: directory.file("push.pem"), key: directory.file("other.key"))
        #expect(throws: expected) { try load("push.pem", key: "other.key") }
    }

    @Test(arguments: [(Int64(31), "expired at"), (-2, "is not valid before")])
    func `a certificate outside its dates is refused`(days: Int64, says: String) throws {
        let error = #expect(throws: CredentialError.self) {
            try load("push.pem", key: "push.key", now: now + days * Self.day)
        }
        #expect(error?.description.contains(says) == true, "\(error?.description ?? "")")
        #expect(error?.description.contains("GMT") == true)
    }

    @Test(arguments: [
        ("missing.pem", "No such file"), ("push.key", "is a private key, not a certificate"),
        ("cut.pem", "is damaged"), ("fake.p12", "not PKCS#12"), ("empty.pem", "an empty file"),
    ])
    func `a file that is no certificate is refused with what it is`(name: String, says: String) throws {
        try directory.write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", to: "cut.pem")
        try directory.write("hello", to: "fake.p12")
        try directory.write("", to: "empty.pem")
        let error = #expect(throws: CredentialError.self) { try load(name, key: "push.key", password: "secret") }
        #expect(error?.description.contains(says) == true, "\(error?.description ?? "")")
    }

    @Test func `a certificate without a key asks for the key`() throws {
        let expected = CredentialError.certificateWithoutKey(path: directory.file("push.pem"), isArchive: false)
        #expect(throws: expected) { try load("push.pem") }
        #expect(expected.description.contains("name the key's file as private_key_path"))
    }
}
