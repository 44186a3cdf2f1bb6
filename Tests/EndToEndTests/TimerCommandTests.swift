import APNsSimulator
import Foundation
import TestSupport
import Testing

/// A campaign that a timer fires, without a daemon.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A campaign by a timer` {
    private static let devices = 300
    private static let run = ["run", "note", "--occurrence-by", "day", "--yes"]
    private static let environment = ["TZ": Program.zoneAtDay]

    private func place() throws -> Installation {
        let place = try Installation(devices: Self.devices) { options in
            options.streamsMax = 8
            // The rest is never answered, so that the first run is met in the middle.
            options.faults = [FaultRule(when: .always.skipping(20), action: .silence)]
        }
        let devices = try place.fanfare("devices", "import", "devices.csv")
        try #require(devices.status == 0, "\(devices.errors)")
        try place.folder.write(
            "template: note\nalert: {en: {body: Hello}}\ndefault_locale: en\n", to: "templates/note.yaml")
        try place.folder.write(
            "campaign: note\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: note\naudience: everyone\nexpires_after: 24h\n",
            to: "campaigns/note.yaml")
        return place
    }

    /// As the timer does.
    private func fire(_ place: Installation) throws -> Program.Result {
        try Program.run(Self.run, in: place.folder, environment: Self.environment)
    }

    /// A run of yesterday that was cut short, and whether that was nine hours ago.
    private func interrupt(_ place: Installation, isLate: Bool = false) throws {
        let program = try RunningProgram(Self.run, in: place.folder, environment: Self.environment)
        try program.wait { place.simulator.counts().requests > 20 }
        program.signal(SIGKILL)
        _ = try program.finish()
        place.simulator.setFaults([])
        try place.change("UPDATE run SET occurrence = 'timer-2025-01-31'")
        if isLate { try place.ageRuns(byHours: 9) }
    }

    private func occurrences(_ place: Installation) throws -> [String] {
        let status = try place.fanfare("status", "--json").output
        return status.matches(of: /"occurrence" : "([^"]+)"/).map { String($0.1) }
    }

    @Test func `what yesterday left unfinished comes first, and today's then`() async throws {
        try await OwnThread.run {
            let place = try place()
            try interrupt(place)
            let first = try fire(place)
            #expect(first.status == 0, "\(first.errors)")
            #expect(first.errors.contains("timer-2025-01-31 is run 1") && first.errors.contains("comes first"))
            #expect(try occurrences(place) == ["timer-2025-01-31"])
            let accepted = place.simulator.log().filter { $0.status == 200 }.compactMap(\.token)
            #expect(Set(accepted) == Set(place.tokens))
            let before = place.simulator.counts().accepted
            // However often it fires.
            for _ in 0..<2 { #expect(try fire(place).status == 0) }
            #expect(place.simulator.counts().accepted == before + Self.devices)
            let zone = try #require(TimeZone(identifier: Program.zoneAtDay))
            let today = Date().formatted(Date.ISO8601FormatStyle(timeZone: zone).year().month().day())
            #expect(try occurrences(place) == ["timer-\(today)", "timer-2025-01-31"])
        }
    }

    @Test func `what is too late waits and is named, and the day's own occurrence starts`() async throws {
        try await OwnThread.run {
            let place = try place()
            try interrupt(place, isLate: true)
            let before = place.simulator.counts().accepted
            // Found late by this call, which has sent today's all the same.
            let found = try fire(place)
            #expect(found.status == 76, "\(found.errors)")
            #expect(found.errors.contains("run 1 is paused as late: "), "\(found.errors)")
            #expect(found.output.components(separatedBy: "occurrence timer-").count == 2, "\(found.output)")
            #expect(place.simulator.counts().accepted == before + Self.devices)
            #expect(try occurrences(place).count == 2)
            // The next day.
            try place.change("UPDATE run SET occurrence = 'timer-2025-02-01' WHERE id = 2")
            let next = try fire(place)
            #expect(next.status == 0, "\(next.errors)")
            let words =
                "warning: run 1, occurrence timer-2025-01-31, is paused as late and still waits: `fanfare resume 1`"
            #expect(next.errors.contains(words), "\(next.errors)")
            #expect(try occurrences(place).count == 3)
            #expect(place.simulator.counts().accepted == before + 2 * Self.devices)
            let resume = try Program.run(["run", "note", "--unfinished", "--yes"], in: place.folder)
            #expect(resume.status == 76 && resume.errors.contains("run 1 is paused as late: "), "\(resume.errors)")
            let late = try place.fanfare("status", "1").output
            #expect(late.contains("paused as late"), "\(late)")
            #expect(try place.fanfare("cancel", "1").status == 0)
            #expect(try !fire(place).errors.contains("warning: run 1"))
        }
    }

    @Test func `after a boot what was left goes on, whatever became of the file, and nothing new begins`() async throws
    {
        try await OwnThread.run {
            let place = try place()
            let resume = ["run", "note", "--unfinished", "--yes"]
            let none = try Program.run(resume, in: place.folder)
            #expect(none.status == 0 && none.errors.contains("note has no unfinished run"), "\(none.errors)")
            try interrupt(place)
            try place.folder.write("campaign: note\ntopc: x\n", to: "campaigns/note.yaml")
            let rest = try Program.run(resume, in: place.folder)
            #expect(rest.status == 0, "\(rest.errors)")
            let accepted = place.simulator.log().filter { $0.status == 200 }.compactMap(\.token)
            #expect(Set(accepted) == Set(place.tokens))
            #expect(try occurrences(place) == ["timer-2025-01-31"])
        }
    }

    @Test func `a run that no timer began is named, and not continued`() async throws {
        try await OwnThread.run {
            let place = try place()
            let program = try RunningProgram(["run", "note", "--occurrence", "a", "--yes"], in: place.folder)
            try program.wait { place.simulator.counts().requests > 20 }
            let left = try Program.run(["run", "note", "--unfinished", "--yes"], in: place.folder)
            #expect(left.status == 0 && left.errors.contains("run 1, occurrence a, is running"), "\(left.errors)")
            #expect(!left.errors.contains("has no unfinished run"), "\(left.errors)")
            program.signal(SIGKILL)
            _ = try program.finish()
        }
    }

    @Test func `the zone of the machine names the day, and one name is enough`() async throws {
        try await OwnThread.run {
            let place = try place()
            place.simulator.setFaults([])
            // Between them there is always a midnight.
            for zone in ["Pacific/Kiritimati", "Pacific/Pago_Pago"] {
                let result = try Program.run(Self.run, in: place.folder, environment: ["TZ": zone])
                #expect(result.status == 0, "\(result.errors)")
            }
            #expect(Set(try occurrences(place)).count == 2)
            let hour = try Program.run(["run", "note", "--occurrence-by", "hour", "--yes"], in: place.folder)
            #expect(hour.status == 0, "\(hour.errors)")
            #expect(try occurrences(place).contains { $0.wholeMatch(of: /timer-\d{4}-\d\d-\d\dT\d\d.*/) != nil })
            for words in [
                ["note", "--occurrence-by", "day", "--occurrence", "a"], ["note", "--occurrence-by", "week"],
                ["--due", "--occurrence-by", "day"], ["note", "--unfinished", "--occurrence", "a"],
                ["--due", "--unfinished"],
            ] {
                #expect(try Program.run(["run"] + words, in: place.folder).status == 64)
            }
        }
    }
}
