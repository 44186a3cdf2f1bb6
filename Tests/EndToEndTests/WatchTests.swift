import Foundation
import TestSupport
import Testing

@testable import fanfare

@Suite(.ownThread, .timeLimit(.minutes(5))) struct `Watching` {
    @Test func `status --watch of a run that is over shows it and ends`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        let seen = try place.fanfare("status", "new-podcast", "--watch")
        #expect(seen.status == 0, "\(seen.errors)")
        #expect(seen.output.contains("new-podcast/a"))
        #expect(seen.output.contains("finished"))
        #expect(!seen.output.contains("\u{1B}"))
        #expect(try place.fanfare("status", "--watch", "--json").status == 64)
    }

    @Test func `a reader that has seen enough ends it without a word`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        // The reader is gone before anything is written.
        let seen = try Program.run(
            ["-c", "(sleep 0.5; exec \"$0\" status --json) | true", Program.url.path], in: place.folder,
            program: URL(fileURLWithPath: "/bin/sh"))
        #expect(seen.status == 0 && seen.errors.isEmpty, "\(seen.errors)")
    }

    @Test func `the list of runs shortens a long name in its middle`() {
        let name = "new-podcast/" + String(repeating: "a", count: 300) + "-2026"
        let shown = RunList.shown(name)
        #expect(shown.count == 60 && shown.hasPrefix("new-podcast/aaa") && shown.hasSuffix("aaa-2026"))
        #expect(RunList.shown("new-podcast/2026-12-01T09:00") == "new-podcast/2026-12-01T09:00")
    }

    @Test func `the log is JSON, a line an object, when asked for`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        try place.configure(production: "127.0.0.1:1")
        let result = try place.run("new-podcast", "--occurrence", "a", "--log-format", "json", "--log-level", "debug")
        #expect(result.status == 69)
        let lines = result.errors.split(separator: "\n").filter { $0.hasPrefix("{") }
        #expect(!lines.isEmpty)
        for line in lines {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            #expect(object?["level"] is String && object?["message"] is String && object?["time"] is String, "\(line)")
        }
        #expect(lines.contains { $0.contains("\"level\":\"error\"") && $0.contains("127.0.0.1:1") })
    }
}
