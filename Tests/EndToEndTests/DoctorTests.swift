import APNsSimulator
import Campaigns
import Foundation
import GRDB
import TestSupport
import Testing

@testable import fanfare

/// What support would ask for first, asked of complete and of broken installations.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Doctor` {
    private struct Report: Decodable {
        struct Check: Decodable {
            var check, state, message: String
        }

        var version, system, libraries: String
        var isWell: Bool
        var checks: [Check]

        init(_ result: Program.Result) throws {
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            self = try decoder.decode(Report.self, from: Data(result.output.utf8))
        }

        func states(_ check: String) -> [String] { checks.filter { $0.check == check }.map(\.state) }
        func messages(_ check: String) -> [String] { checks.filter { $0.check == check }.map(\.message) }
    }

    @Test func `finds nothing wrong with a complete installation, and changes nothing`() throws {
        let place = try Installation(devices: 2)
        try place.importDevices()
        try FileManager.default.setAttributes([.posixPermissions: 0o750], ofItemAtPath: place.folder.path)
        let before = try Self.contents(of: place.folder)
        let report = try Report(try place.fanfare("doctor", "--json"))
        #expect(report.isWell)
        let checks = [
            "configuration", "files", "credential", "rights", "limits", "store", "daemon", "disk", "port", "proxy",
        ]
        for check in checks {
            #expect(report.states(check) == ["ok"], "\(check): \(report.messages(check))")
        }
        #expect(report.states("network") == ["skipped"])
        #expect(report.libraries.contains("libcurl/") && report.libraries.contains("OpenSSL/"))
        #expect(try Self.contents(of: place.folder) == before)
        #expect(place.simulator.counts().requests == 0)
        let page = try place.fanfare("doctor")
        #expect(page.status == 0)
        #expect(
            page.output.contains("\nok       configuration  fanfare.yaml: \(Installation.topic)\n"), "\(page.output)")
    }

    @Test func `names the process that keeps the store locked`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        let queue = try DatabaseQueue(path: place.folder.file("fanfare.sqlite"))
        let result = try queue.writeWithoutTransaction { db in
            try db.execute(sql: "BEGIN IMMEDIATE")
            defer { try? db.execute(sql: "ROLLBACK") }
            return try place.fanfare("doctor", "--json")
        }
        try queue.close()
        let report = try Report(result)
        let locked = report.messages("store").filter { $0.contains("process \(getpid()) (") }
        #expect(locked.count == 1 && report.states("store").contains("wrong"), "\(report.messages("store"))")
        #expect(result.status == 78)
        #expect(try Report(try place.fanfare("doctor", "--json")).states("store") == ["ok"])
    }

    /// What somebody has broken, where it is found, and what is said about it.
    static let rows: [(name: String, change: @Sendable (Installation) throws -> Void, check: String, words: String)] = [
        ("key of another kind", { try $0.folder.write("nothing", to: "key.p8") }, "credential", "not a private key"),
        (
            "configuration with a typo", { try $0.configure(more: "stor: x") }, "configuration",
            "did you mean \"store\"?"
        ),
        (
            "campaign with an error", { try $0.folder.write("campaign: bad\n", to: "campaigns/bad.yaml") }, "files",
            "`fanfare validate` lists them"
        ),
        (
            "folder of the store gone",
            { place in
                let text = try place.folder.read("fanfare.yaml")
                try place.folder.write(text.replacing("store: ", with: "store: gone/"), to: "fanfare.yaml")
            }, "store", "does not exist; create it"
        ),
        ("store that is none", { try $0.folder.write("no database", to: "fanfare.sqlite") }, "store", "SQLite"),
        (
            "templates gone", { try FileManager.default.removeItem(atPath: $0.folder.path + "/templates") }, "files",
            "no folder"
        ),
    ]

    @Test(arguments: rows.indices) func `says what is wrong and what to do`(index: Int) throws {
        let row = Self.rows[index]
        let place = try Installation(devices: 1)
        try row.change(place)
        let result = try place.fanfare("doctor", "--json")
        #expect(result.status == 78, "\(row.name): \(result.errors)")
        let report = try Report(result)
        #expect(!report.isWell)
        #expect(report.states(row.check).contains("wrong"), "\(row.name)")
        let said = report.messages(row.check).joined(separator: "\n")
        #expect(said.contains(row.words), "\(row.name): \(said)")
    }

    @Test func `warns of what works and should not be so`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        let folder = place.folder.path
        try FileManager.default.moveItem(atPath: "\(folder)/key.p8", toPath: "\(folder)/AuthKey_OTHERKEY01.p8")
        try place.configure(keyPath: "AuthKey_OTHERKEY01.p8")
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: "\(folder)/campaigns")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: "\(folder)/fanfare.sqlite")
        let result = try place.fanfare("doctor", "--json")
        #expect(result.status == 0, "\(result.output)")
        let report = try Report(result)
        #expect(report.states("credential") == ["warning"])
        #expect(report.messages("credential").first?.contains("key_id is TESTKEY001") == true)
        let rights = report.messages("rights")
        #expect(
            rights.contains { $0.contains("chmod o-w") } && rights.contains { $0.contains("chmod 600") }, "\(rights)")
    }

    @Test func `looks at what links lead to, not at the links`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        let folder = place.folder.path
        try FileManager.default.setAttributes([.posixPermissions: 0o750], ofItemAtPath: folder)
        try FileManager.default.createDirectory(
            atPath: "\(folder)/kept", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o750])
        for name in ["key.p8", "fanfare.sqlite", "campaigns", "templates"] {
            try FileManager.default.moveItem(atPath: "\(folder)/\(name)", toPath: "\(folder)/kept/\(name)")
            try FileManager.default.createSymbolicLink(atPath: "\(folder)/\(name)", withDestinationPath: "kept/\(name)")
        }
        // Where the import left a log, it belongs to the store.
        for name in ["fanfare.sqlite-wal", "fanfare.sqlite-shm"] {
            try? FileManager.default.moveItem(atPath: "\(folder)/\(name)", toPath: "\(folder)/kept/\(name)")
        }
        let report = try Report(try place.fanfare("doctor", "--json"))
        for check in ["files", "credential", "rights", "store"] {
            #expect(report.states(check) == ["ok"], "\(check): \(report.messages(check))")
        }
        chmod("\(folder)/kept/fanfare.sqlite", 0o644)
        chmod("\(folder)/kept/campaigns", 0o777)
        let rights = try Report(try place.fanfare("doctor", "--json")).messages("rights")
        #expect(
            rights.contains { $0.contains("chmod o-w") } && rights.contains { $0.contains("chmod 600") }, "\(rights)")
    }

    @Test func `names the proxy that the native transport cannot get past`() throws {
        let place = try Installation(devices: 1)
        try place.configure(production: "relay.example.com:443")
        let result = try place.fanfare("doctor", environment: ["https_proxy": "http://proxy.example.com:3128"])
        #expect(result.status == 78)
        #expect(result.output.contains("https_proxy is set, but the native transport supports no proxy"))
    }

    @Test func `connects to the endpoints when asked, with one push to a made-up token for each`() throws {
        let place = try Installation(devices: 1)
        let well = try place.fanfare("doctor", "--network", "--json")
        #expect(well.status == 0, "\(well.output)")
        #expect(try Report(well).states("network") == ["ok", "ok"])
        #expect(try Report(well).states("credential") == ["ok", "ok", "ok"])
        #expect(place.simulator.counts().accepted == 0 && place.simulator.counts().requests == 2)

        let port = try ClosedPort()
        try place.configure(production: "127.0.0.1:\(port.number)")
        let closed = try place.fanfare("doctor", "--network", "--json")
        #expect(closed.status == 69, "\(closed.output)")
        let report = try Report(closed)
        #expect(report.states("network") == ["wrong", "ok"])
        #expect(report.messages("network").first?.contains("check DNS") == true)

        let stranger = try LocalCertificate()
        try place.configure(trust: stranger.path)
        let strange = try place.fanfare("doctor", "--network")
        #expect(strange.status == 69, "\(strange.output)")
        #expect(strange.output.contains("cannot be trusted"))
    }

    @Test func `a server of the store that is away is an outage, and nothing to correct here`() throws {
        let port = try ClosedPort()
        let place = try Installation(devices: 1, store: "postgres://anna@127.0.0.1:\(port.number)/d")
        let away = try place.fanfare("doctor", "--json")
        #expect(away.status == 69, "\(away.output)")
        #expect(try Report(away).states("store") == ["wrong"])
    }

    /// A key that signs may still be another team's, or none that APNs knows.
    @Test func `tells a wrong key or team from a good one`() throws {
        let place = try Installation(devices: 1)
        try place.configure(keyID: "WRONGKEY01")
        #expect(try place.fanfare("doctor").status == 0)
        let result = try place.fanfare("doctor", "--network", "--json")
        #expect(result.status == 78, "\(result.output)")
        let report = try Report(result)
        #expect(report.states("network") == ["ok", "ok"])
        #expect(report.states("credential") == ["ok", "wrong", "wrong"])
        let words = try #require(report.messages("credential").last)
        #expect(words.contains("key WRONGKEY01 of team") && words.contains("403 InvalidProviderToken"), "\(words)")
        #expect(words.contains("compare team_id"))
    }

    @Test(arguments: [
        (200, "", Finding.State.ok, "accepts the credential"), (400, "BadDeviceToken", .ok, "accepts the credential"),
        (403, "InvalidProviderToken", .wrong, "compare team_id"), (403, "ExpiredProviderToken", .wrong, "clock"),
        (403, "BadEnvironmentKeyIdInToken", .wrong, "the other environment"),
        (400, "TopicDisallowed", .wrong, "may not send to com.example.a"),
        (503, "ServiceUnavailable", .warning, "later"),
        (429, "TooManyProviderTokenUpdates", .warning, "later"),
    ])
    func `reads what APNs says to a made-up token`(
        status: Int, reason: String, state: Finding.State, words: String
    ) {
        let body = reason.isEmpty ? [] : Array("{\"reason\":\"\(reason)\"}".utf8)
        let finding = ProbeAnswer(status: status, body: body, topic: "com.example.a", credential: "k").finding
        #expect(finding.state == state && finding.message.contains(words), "\(finding)")
    }

    @Test func `says who has the port of the pages`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        var taken: ClosedPort? = try ClosedPort()
        let text = try place.folder.read("fanfare.yaml")
        try place.folder.write(
            text.replacing("127.0.0.1:0", with: "127.0.0.1:\(taken?.number ?? 0)"), to: "fanfare.yaml")
        let strange = try place.fanfare("doctor", "--json")
        #expect(strange.status == 78)
        #expect(try Report(strange).messages("port").first?.contains("another program has the port") == true)
        taken = nil
        #expect(try Report(try place.fanfare("doctor", "--json")).states("port") == ["ok"])
        let daemon = try RunningProgram(["serve"], in: place.folder)
        try daemon.wait { daemon.errors.contains("files read") }
        let own = try Report(try place.fanfare("doctor", "--json"))
        #expect(own.states("port") == ["ok"] && own.messages("port").first?.contains("the daemon uses it") == true)
        daemon.signal(SIGTERM)
        _ = try daemon.finish()
    }

    @Test func `says of a main file without its log how such a copy comes about`() throws {
        let place = try Installation(devices: 1)
        let made = try Program.run(
            [
                "python3", "-c",
                "import sqlite3; c = sqlite3.connect('fanfare.sqlite'); c.execute('create table x (y)')",
            ],
            in: place.folder, program: URL(fileURLWithPath: "/usr/bin/env"))
        try #require(made.status == 0, "\(made.errors)")
        let report = try Report(try place.fanfare("doctor", "--json"))
        let words = report.messages("store").joined()
        #expect(report.states("store").contains("wrong") && words.contains("-wal") && words.contains("fanfare backup"))
    }

    @Test func `without a configuration says where it looked, and what the machine is like`() throws {
        let folder = try TemporaryDirectory()
        let result = try Program.run(["doctor", "--config", "none.yaml"], in: folder)
        #expect(result.status == 78)
        #expect(result.output.contains("none.yaml") && result.output.contains("limits"))
    }

    /// Every file's bytes and mode; what SQLite keeps beside a store while it is read is none of the store.
    private static func contents(of folder: TemporaryDirectory) throws -> [String: [String]] {
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter {
            !$0.hasSuffix("-shm") && !$0.hasSuffix("-wal")
        }
        // The program's output goes to files of the folder, too.
        let kept = paths.filter { $0.contains("fanfare.") || $0.hasPrefix("campaigns") || $0.hasPrefix("templates") }
        return Dictionary(
            uniqueKeysWithValues: try kept.map { path in
                let full = "\(folder.path)/\(path)"
                let mode = try FileManager.default.attributesOfItem(atPath: full)[.posixPermissions] as? Int
                let data = FileManager.default.contents(atPath: full)
                return (path, ["\(mode ?? 0)", "\(data?.hashValue ?? 0)"])
            })
    }
}
