import Campaigns
import Foundation
import TestSupport
import Testing

@testable import fanfare

/// The README's first command, looked at from both sides.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The demo` {
    /// One request as the simulator logged it.
    struct Entry: Decodable {
        var time: Int
        var connection: Int
        var environment: String
        var token: String
        var apnsID: String
        var topic: String
        var pushType: String
        var priority: String
        var expiration: String
        var collapseID: String?
        var payloadBytes: Int
        var status: Int
        var reason: String?
        var openStreams: Int
        var hadAcceptance: Bool

        enum CodingKeys: String, CodingKey {
            case connection, environment, token, topic, priority, expiration, status, reason
            case time = "time_ms"
            case apnsID = "apns_id"
            case pushType = "push_type"
            case collapseID = "collapse_id"
            case payloadBytes = "payload_bytes"
            case openStreams = "open_streams"
            case hadAcceptance = "had_acceptance"
        }
    }

    private static let devices = 5_000

    /// For all that a demo does.
    static let patience: Duration = .seconds(600)

    private static func played() throws -> (output: String, log: [Entry]) {
        let folder = try TemporaryDirectory()
        let result = try Program.run(
            ["demo", "--dir", "demo", "--devices", "\(devices)"], in: folder, patience: patience)
        try #require(result.status == 0, "\(result.output)\n\(result.errors)")
        let decoder = JSONDecoder()
        let log = try folder.read("demo/simulator.jsonl").split(separator: "\n").map {
            try decoder.decode(Entry.self, from: Data($0.utf8))
        }
        return (result.output, log)
    }

    @Test func `ends with a report that adds up, and APNs' side agrees`() throws {
        let (output, log) = try Self.played()
        #expect(output.components(separatedBy: "The counts balance.").count == 3)
        #expect(output.contains("silent_budget"))
        #expect(!output.contains("DO NOT CLOSE"))
        let alerts = log.filter { $0.pushType == "alert" }
        let silent = log.filter { $0.pushType == "background" }
        #expect(alerts.count + silent.count == log.count)
        // The broadcast of the episode comes first. The comparison of two texts has a collapse id of its own.
        let episode = try #require(alerts.first?.collapseID)
        let compared = alerts.filter { $0.collapseID != episode }
        #expect(compared.count { $0.status == 200 } > Self.devices / 2)
        try Self.checkAlerts(alerts.filter { $0.collapseID == episode })
        // The people of the demo open one text more, and play the episode because of the push.
        #expect(output.contains("played_episode by 5s after the last push"), "\(output.suffix(3_000))")
        #expect(output.contains("The push made") && output.contains("question was opened more often"))
        try Self.checkSilent(silent)
        Self.checkConnections(alerts.filter { $0.collapseID == episode })
    }

    @Test func `does nothing to an installation that the environment names`() throws {
        let folder = try TemporaryDirectory()
        try folder.write("not read", to: "theirs.yaml")
        let result = try Program.run(
            ["demo", "--dir", "demo", "--devices", "200"], in: folder,
            environment: [
                "FANFARE_STORE": folder.file("theirs.sqlite"), "FANFARE_CONFIG": folder.file("theirs.yaml"),
                "FANFARE_CAMPAIGNS": "/nowhere",
            ])
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output.contains("ignored here: FANFARE_CAMPAIGNS, FANFARE_CONFIG, FANFARE_STORE\n"))
        #expect(!FileManager.default.fileExists(atPath: folder.file("theirs.sqlite")))
        #expect(FileManager.default.fileExists(atPath: folder.file("demo/fanfare.sqlite")))
    }

    @Test func `says in one line how to get the server that it is asked for`() throws {
        let folder = try TemporaryDirectory()
        try folder.write(
            """
            mkdir -p empty && { [ ! -d /usr/lib/postgresql ] || mount --bind empty /usr/lib/postgresql; } || exit 9
            PATH=/usr/bin:/bin exec "$FANFARE" demo --postgres --dir demo
            """, to: "without.sh")
        let result = try Program.run(
            ["unshare", "--map-root-user", "--mount", "sh", folder.file("without.sh")], in: folder,
            environment: ["FANFARE": Program.url.path], program: URL(fileURLWithPath: "/usr/bin/env"))
        #expect(result.status == 78)
        #expect(
            result.output + result.errors
                == "error: no PostgreSQL server is installed; run: apt-get install -y postgresql\n")
        #expect(!FileManager.default.fileExists(atPath: folder.file("demo")))
    }

    @Test func `shows a tool's own error, and not that it tidies up`() async throws {
        let folder = try TemporaryDirectory()
        let processes = try DemoProcesses(server: folder.file("server"), removing: [], logs: folder.path)
        defer { processes.terminateAll() }
        try await processes.run(["sh", "-c", "echo 'fatal: of another tool'"], log: "postgres")
        let script = """
            echo 'The files will be owned by user "x".'
            echo 'initdb: error: directory exists but is not empty' >&2
            echo 'initdb: hint: remove it' >&2
            echo 'initdb: removing contents of data directory' >&2
            exit 1
            """
        let failure = await #expect(throws: Failure.self) {
            try await processes.run(["sh", "-c", script], log: "postgres", name: "initdb")
        }
        #expect(
            failure?.messages == [
                "initdb failed:\n  initdb: error: directory exists but is not empty\n  initdb: hint: remove it\n  "
                    + "initdb: removing contents of data directory"
            ])
        #expect(ToolError.lines(of: "a\nb\n") == ["a", "b"] && ToolError.lines(of: "").isEmpty)
    }

    private static func checkAlerts(_ alerts: [Entry]) throws {
        let accepted = alerts.filter { $0.status == 200 }
        #expect(accepted.count > devices / 2)
        #expect(Set(accepted.map(\.token)).count == accepted.count, "a token was accepted twice")
        #expect(Set(alerts.map(\.apnsID)).count == alerts.count)
        #expect(alerts.allSatisfy { $0.topic == "com.example.wendercast" && $0.priority == "10" })
        #expect(Set(alerts.map(\.collapseID)).count == 1)
        #expect(Set(alerts.map(\.expiration)).count == 1)
        let planned = try #require(alerts.map(\.time).min()) / 1000
        let expiration = try #require(Int(alerts[0].expiration))
        #expect((planned..<planned + 5 * 3600).contains(expiration))
        #expect(Set(alerts.filter { $0.status != 200 }.map(\.reason)) == ["Unregistered", "BadDeviceToken"])
    }

    private static func checkSilent(_ silent: [Entry]) throws {
        #expect(silent.allSatisfy { $0.topic == "com.example.wendercast" && $0.priority == "5" })
        let perToken = Dictionary(grouping: silent, by: \.token)
        let perBudget = perToken.values.map { $0.count { $0.status == 200 } }.max()
        #expect(perBudget == 3, "the budget is three an hour; what was refused does not count")
        let acceptedThrice = perToken.values.filter { $0.count == 3 && $0.allSatisfy { $0.status == 200 } }
        #expect(acceptedThrice.count > devices / 5)
    }

    private static func checkConnections(_ alerts: [Entry]) {
        let connections = Dictionary(grouping: alerts, by: \.connection)
        #expect(Set(connections.values.map { Set($0.map(\.environment)).count }) == [1])
        let lanes = Dictionary(grouping: connections.values) { $0.first?.environment ?? "" }.mapValues(\.count)
        // On a slow machine one lane may have sent everything before the other has a connection.
        #expect([1, 2].contains(lanes["production"]), "\(lanes)")
        #expect(alerts.count { $0.environment == "sandbox" } <= 2000 && [1, 2].contains(lanes["sandbox"]), "\(lanes)")
        for requests in connections.values {
            #expect(requests.filter { !$0.hadAcceptance }.allSatisfy { $0.openStreams <= 1 })
        }
    }
}

/// Two senders on a server, one of which is killed.
@Suite(.ownThread, .timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `The demo on PostgreSQL` {
    private static let demo = ["demo", "--postgres", "--dir", "demo", "--devices", "5000"]

    /// Where the server's own user may go, too.
    private static func folder() throws -> TemporaryDirectory {
        let folder = try TemporaryDirectory()
        chmod(folder.path, 0o755)
        return folder
    }

    /// Whoever was started with the folder in a word, or stands in it; but for this process.
    private static func processes(of folder: TemporaryDirectory) throws -> [Int32] {
        let files = FileManager.default
        return try files.contentsOfDirectory(atPath: "/proc").compactMap(Int32.init).filter { pid in
            let words = files.contents(atPath: "/proc/\(pid)/cmdline").map { String(decoding: $0, as: UTF8.self) } ?? ""
            let place = (try? files.destinationOfSymbolicLink(atPath: "/proc/\(pid)/cwd")) ?? ""
            return pid != getpid() && (words.contains("\(folder.path)/demo") || place.hasPrefix("\(folder.path)/demo"))
        }
    }

    private static func filesLeft(in folder: TemporaryDirectory) -> [String] {
        ["postgres", "machines"].filter { FileManager.default.fileExists(atPath: folder.file("demo/\($0)")) }
    }

    private static func expectNothingLeft(in folder: TemporaryDirectory) throws {
        let left = try processes(of: folder)
        #expect(left.isEmpty)
        #expect(filesLeft(in: folder) == [])
    }

    @Test func `shows how one sender takes over from another, and both sides agree`() async throws {
        try await OwnThread.run {
            let folder = try Self.folder()
            let result = try Program.run(Self.demo, in: folder, patience: `The demo`.patience)
            #expect(result.status == 0, "\(result.output)\n\(result.errors)")
            #expect(result.output.contains("# kill -9 ") && result.output.contains("has taken over"))
            #expect(result.output.contains("The counts balance.") && result.output.contains(/all [0-9]+ checks passed/))
            #expect(result.output.contains("# Both sides agree."))
            let decoder = JSONDecoder()
            let log = try folder.read("demo/simulator.jsonl").split(separator: "\n").map {
                try decoder.decode(`The demo`.Entry.self, from: Data($0.utf8))
            }
            // What the report says, from the other side: the devices are always the same.
            #expect(Set(log.filter { $0.status == 200 }.map(\.token)).count == 3_478)
            try Self.expectNothingLeft(in: folder)
        }
    }

    /// A word of the demo, and what it is told then.
    private static let ends: [(after: String, signal: Int32)] = [
        ("A PostgreSQL server", SIGINT), ("# kill -9", SIGTERM), ("sender 2", SIGKILL), ("# kill -9", SIGKILL),
    ]

    @Test(arguments: Nightly.rows([0, 2], atNight: [1, 3])) func `leaves nothing behind, however it ends`(index: Int)
        async throws
    {
        let end = Self.ends[index]
        try await OwnThread.run {
            let folder = try Self.folder()
            let demo = try RunningProgram(Self.demo, in: folder)
            try demo.wait(atMost: `The demo`.patience) { demo.output.contains(end.after) }
            let others = try Self.processes(of: folder).filter { $0 != demo.pid }
            #expect(!others.isEmpty)
            demo.signal(end.signal)
            let result = try demo.finish()
            #expect(result.status == (end.signal == SIGKILL ? SIGKILL : 75), "\(result.errors)")
            if end.signal == SIGKILL {
                // Until the last of them has gone by itself: also those that were started after the look at them.
                try Patience.wait(for: "the end of all that the demo has started") {
                    try Self.processes(of: folder).isEmpty && Self.filesLeft(in: folder).isEmpty
                }
            }
            try Self.expectNothingLeft(in: folder)
        }
    }
}
