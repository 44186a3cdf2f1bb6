import Foundation
import Logging
import Model
import TestSupport
import Testing

@testable import fanfare

struct `Lines of the log` {
    private static let noon = Timestamp(milliseconds: 1_800_014_400_000)

    private func lines(_ format: Configuration.Log.Format, isJournal: Bool = false) -> LogLines {
        LogLines(format, isJournal: isJournal, now: { Self.noon })
    }

    private static let facts: Logger.Metadata = ["run": "7", "reason": "no answer from \"a\""]

    @Test func `of text have the time in UTC, and values with blanks in quotes`() {
        let line = lines(.text).event(.warning, label: "fanfare", "run paused", Self.facts)
        #expect(line == #"2027-01-15T12:00:00Z warning run paused reason="no answer from \"a\"" run=7"#)
        #expect(lines(.text).sentence("error: no", .error) == "error: no")
    }

    @Test(arguments: [
        (Logger.Level.critical, 2), (.error, 3), (.warning, 4), (.notice, 5), (.info, 6), (.debug, 7), (.trace, 7),
    ])
    func `of the journal have the priority of their level and no time`(level: Logger.Level, priority: Int) {
        #expect(
            lines(.journal).event(level, label: "fanfare", "run ended", ["run": "7"]) == "<\(priority)>run ended run=7")
        #expect(lines(.journal).sentence("one\ntwo", level) == "<\(priority)>one\n<\(priority)>two")
    }

    @Test func `of JSON are one object each, and in the journal have a priority in front`() throws {
        for isJournal in [false, true] {
            for line in [
                lines(.json, isJournal: isJournal).event(.error, label: "l", "a \u{1} b", ["time": "x", "run": "7"]),
                lines(.json, isJournal: isJournal).sentence("error: no\nmore", .error),
            ] {
                #expect(line.hasPrefix("<3>") == isJournal && !line.contains("\n"))
                let text = isJournal ? String(line.dropFirst(3)) : line
                let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: String]
                #expect(object?["level"] == "error" && object?["time"] == "2027-01-15T12:00:00Z")
                #expect(object?["message"]?.isEmpty == false)
            }
        }
    }

    @Test func `go to the journal only where it is behind the descriptor`() throws {
        let folder = try TemporaryDirectory()
        try folder.write("", to: "log")
        let file = open("\(folder.path)/log", O_RDONLY)
        defer { close(file) }
        var facts = stat()
        try #require(fstat(file, &facts) == 0)
        #expect(Journal.isStream("\(facts.st_dev):\(facts.st_ino)", descriptor: file))
        #expect(!Journal.isStream("\(facts.st_dev):\(facts.st_ino + 1)", descriptor: file))
        #expect(!Journal.isStream("", descriptor: file))
    }
}

/// The lines that programs write, as a journal would have them.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The log` {
    @Test func `of a run has a line at its start and one at its end, with its name, counts and seconds`() async throws {
        try await OwnThread.run {
            let place = try Installation(devices: 3)
            try place.importDevices()
            let result = try place.run(
                "new-podcast", "--occurrence", "a", "--log-level", "info", "--log-format", "journal")
            #expect(result.status == 0, "\(result.errors)")
            let lines = result.errors.split(separator: "\n").map(String.init)
            #expect(lines.filter { $0.hasPrefix("<6>run started ") }.count == 1, "\(lines)")
            let ends = lines.filter { $0.hasPrefix("<6>run ended ") }
            #expect(ends.count == 1, "\(lines)")
            for fact in [
                "campaign=new-podcast", "occurrence=a", "run=1", "end=finished", "audience=3", "accepted=3",
                "rejected=0",
                "unknown=0", "suppressed=0", "left=0",
            ] {
                #expect(ends.first?.contains(fact) == true, "\(fact): \(ends)")
            }
            #expect(ends.first?.firstMatch(of: /seconds=[0-9]+\.[0-9]/) != nil)
        }
    }

    @Test func `says in words what a run paused for, as a warning, without values of Swift`() async throws {
        try await OwnThread.run {
            let place = try Installation(devices: 3)
            try place.importDevices()
            try place.configure(production: "127.0.0.1:1")
            let result = try place.run("new-podcast", "--occurrence", "a", "--log-format", "journal")
            #expect(result.status == 69)
            let line = result.errors.split(separator: "\n").first { $0.hasPrefix("<4>run paused ") }
            #expect(line?.contains("end=unreachable") == true && line?.contains("campaign=new-podcast") == true)
            #expect(!result.errors.contains("unreachable("), "\(result.errors)")
            // What the command exits with is an error in the journal as well.
            #expect(result.errors.split(separator: "\n").contains { $0.hasPrefix("<3>error: ") })
        }
    }

    @Test(arguments: [true, false])
    func `of a daemon warns of a role header unless the proxy removes it`(isRemoved: Bool) async throws {
        try await OwnThread.run {
            let place = try Installation(devices: 1)
            let settings = try place.folder.read("fanfare.yaml")
            let listen = #"listen: "127.0.0.1:0""#
            try #require(settings.contains(listen))
            let more = isRemoved ? ", removes_headers: true" : ""
            let proxy = #"proxy: {addresses: ["127.0.0.1"], user_header: X-User, role_header: X-Role\#(more)}"#
            try place.folder.write(settings.replacing(listen, with: "\(listen), \(proxy)"), to: "fanfare.yaml")
            let daemon = try RunningProgram(["serve", "--create", "--log-format", "journal"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            daemon.signal(SIGTERM)
            let result = try daemon.finish()
            #expect(result.status == 0, "\(result.errors)")
            let warnings = result.errors.split(separator: "\n").filter { $0.contains("X-Role") }
            #expect(warnings.count == (isRemoved ? 0 : 1), "\(result.errors)")
            #expect(warnings.allSatisfy { $0.hasPrefix("<4>http.proxy: ") && $0.contains("removes_headers: true") })
        }
    }

    /// A line is what an operator reads: the API's document alone is over a megabyte.
    @Test func `has no line longer than 4 KiB at any level, and says how it is configured`() async throws {
        try await OwnThread.run {
            let place = try Installation(devices: 3)
            try place.importDevices()
            let settings = try place.folder.read("fanfare.yaml")
            try place.folder.write(settings + "\nlog: {format: json, level: debug}\n", to: "fanfare.yaml")
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            daemon.signal(SIGTERM)
            let result = try daemon.finish()
            #expect(result.status == 0, "\(result.errors)")
            let lines = result.errors.split(separator: "\n")
            #expect(lines.contains { $0.contains(#""level":"debug""#) })
            for line in lines {
                #expect(line.utf8.count < 4096 && line.hasPrefix("{"), "\(line.prefix(400))")
            }
        }
    }
}
