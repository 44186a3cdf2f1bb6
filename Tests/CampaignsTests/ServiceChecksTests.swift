import CampaignFiles
import Foundation
import Model
import SQLiteStore
import Sending
import Store
import TestSupport
import Testing

@testable import Campaigns

/// What root sees of a service that runs as another user. That user owns nothing here: the bits for others count.
struct ServiceChecksTests {
    private let folder: TemporaryDirectory
    private let user = ServiceUser(name: "fanfare", uid: 54_321, groups: [54_321])

    init() throws {
        folder = try TemporaryDirectory()
        for name in ["campaigns", "templates", "state", "keys"] {
            try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: false)
            try mode(0o777, name)
        }
        try mode(0o755, "")
        try folder.write("key", to: "keys/a.p8")
        try folder.write("store: x", to: "fanfare.yaml")
        try mode(0o600, "keys/a.p8")
        try mode(0o644, "fanfare.yaml")
    }

    private func mode(_ bits: Int, _ name: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: bits], ofItemAtPath: "\(folder.path)/\(name)")
    }

    private func findings(
        key: String = "keys/a.p8", trust: String? = nil, editing: Bool = false, copies: String? = nil,
        store: String? = nil
    ) -> [Finding] {
        var app = Configuration.App(
            topic: "com.example.a",
            credential: .key(teamID: "DEF123GHIJ", keyID: "ABC123DEFG", path: folder.file(key)))
        app.endpoints.trust = trust
        var configuration = Configuration(
            store: store ?? folder.file("state/fanfare.sqlite"), campaigns: folder.file("campaigns"),
            templates: folder.file("templates"), apps: [app])
        configuration.http.editing = editing
        let service = ServiceFacts(user: user, credentials: ["keys": folder.file("keys")], copies: copies)
        return ServiceChecks(configuration, path: folder.file("fanfare.yaml"), service: service).all()
    }

    @Test func `finds nothing where the service can do its work`() {
        #expect(findings().map(\.state) == [.ok], "\(findings())")
    }

    @Test func `names files of the store that belong to root, with the command that gives them back`() throws {
        try folder.write("", to: "state/fanfare.sqlite")
        try mode(0o600, "state/fanfare.sqlite")
        let found = findings()
        #expect(found.map(\.state) == [.wrong] && found.map(\.check) == [.rights])
        #expect(
            found.first?.message.contains("cannot write \(folder.file("state/fanfare.sqlite"))") == true, "\(found)")
        #expect(found.first?.message.contains("chown -R fanfare: \(folder.file("state/fanfare.sqlite"))") == true)
    }

    @Test func `names the folder on the way that keeps the service out`() throws {
        try mode(0o700, "campaigns")
        let found = findings()
        #expect(found.map(\.state) == [.wrong], "\(found)")
        #expect(found.first?.message.contains("cannot read \(folder.file("campaigns"))") == true)
    }

    @Test func `names a file that the service cannot see, such as an authority below the home of root`() throws {
        try folder.write("ca", to: "ca.pem")
        try mode(0o600, "ca.pem")
        #expect(
            findings(trust: folder.file("ca.pem")).first?.message.contains("cannot read \(folder.file("ca.pem"))")
                == true)
        let hidden = findings(trust: "/root/sim/ca.pem")
        #expect(hidden.first?.state == .wrong && hidden.first?.message.contains("ProtectHome=") == true, "\(hidden)")
    }

    @Test func `warns where editing is on and the folders are not the service's`() throws {
        try mode(0o755, "templates")
        #expect(findings().map(\.state) == [.ok])
        let found = findings(editing: true)
        #expect(found.map(\.state) == [.warning])
        #expect(found.first?.message.contains("chown -R fanfare: \(folder.file("templates"))") == true, "\(found)")
    }

    @Test func `names a key that the unit does not hand over`() throws {
        try folder.write("key", to: "b.p8")
        try mode(0o600, "b.p8")
        let found = findings(key: "b.p8")
        #expect(found.map(\.state) == [.wrong] && found.map(\.check) == [.credential], "\(found)")
        #expect(found.first?.message.contains("LoadCredential=") == true)
    }

    /// The service has a copy; whoever types a command has not.
    @Test func `names a password of the store that the commands of the service's user cannot read`() throws {
        let url = "postgres://fanfare@db.example.com/fanfare"
        #expect(findings(store: url).map(\.state) == [.ok])
        try folder.write("db.example.com:5432:fanfare:fanfare:secret", to: "keys/pgpass")
        try folder.write("secret", to: "keys/store.password")
        for name in ["keys/pgpass", "keys/store.password"] { try mode(0o600, name) }
        let named = "\(url)?password_file=\(folder.file("keys/store.password"))"
        for (store, file) in [(url, "keys/pgpass"), (named, "keys/store.password")] {
            let found = findings(store: store)
            #expect(found.map(\.state) == [.warning], "\(found)")
            #expect(found.first?.message.contains("password in \(folder.file(file));") == true, "\(found)")
            #expect(found.first?.message.contains("password_file=/etc/fanfare/store.password") == true)
        }
        try folder.write("secret", to: "store.password")
        try mode(0o600, "store.password")
        let elsewhere = "\(url)?password_file=\(folder.file("store.password"))"
        #expect(findings(store: elsewhere).map(\.state) == [.wrong])
        try mode(0o644, "store.password")
        #expect(findings(store: elsewhere).map(\.state) == [.ok])
    }

    @Test func `names a copy of the running service that is missing or older than the key`() throws {
        try FileManager.default.createDirectory(atPath: folder.file("run"), withIntermediateDirectories: false)
        let none = findings(copies: folder.file("run"))
        #expect(none.map(\.state) == [.warning] && none.first?.message.contains("has no copy of") == true, "\(none)")
        #expect(none.first?.message.contains("systemctl restart fanfare") == true)
        try folder.write("older", to: "run/keys_a.p8")
        #expect(findings(copies: folder.file("run")).first?.message.contains("an older copy") == true)
        try folder.write("key", to: "run/keys_a.p8")
        #expect(findings(copies: folder.file("run")).map(\.state) == [.ok])
    }

    @Test func `another configuration than the unit's is nothing to the service`() {
        let service = ServiceFacts(user: user, credentials: [:], configuration: folder.file("fanfare.yaml"))
        #expect(service.reads(folder.file("fanfare.yaml")))
        #expect(!service.reads(folder.file("keys/fanfare.yaml")) && !service.reads(nil))
    }

    /// The first thing that whoever installs it types.
    @Test func `a fresh installation is told to start the service, and of no folder to be made by hand`() async throws {
        let state = folder.file("none-yet")
        try folder.write(
            """
            store: \(state)/fanfare.sqlite
            campaigns: campaigns
            templates: templates
            apps:
              - {topic: com.example.a, team_id: DEF123GHIJ, key_id: ABC123DEFG, key_path: keys/a.p8}
            """, to: "fanfare.yaml")
        let machine = MachineFacts(
            version: "1", system: "s", libraries: "l", user: "u", isClockKept: true, openFilesMax: 4096,
            threadsMax: nil,
            networkFileSystem: { _ in nil })
        let probes = DiagnoseInstallation.Probes(
            openStore: { throw StoreError.noStore(path: $0, isEmptyFile: false) },
            credential: { _, _ in CredentialFacts() }, proxy: { _ in .direct },
            reach: { _, _, _ in Reachability(endpoint: "", isWell: true, summary: "") }, machine: machine,
            service: ServiceFacts(
                user: user, credentials: ["keys": folder.file("keys")], stateFolder: state,
                configuration: folder.file("fanfare.yaml")))
        let result = await DiagnoseInstallation(
            source: ConfigurationSource(named: folder.file("fanfare.yaml"), environment: [:]), environment: [:],
            probes: probes, now: Timestamp(Date())
        ).diagnose(network: false)
        #expect(result.isWell, "\(result.checks)")
        let store = result.checks.filter { $0.check == .store }
        #expect(store.map(\.state) == [.warning])
        #expect(store.first?.message.hasSuffix("`systemctl start fanfare` creates it") == true, "\(store)")
    }
}
