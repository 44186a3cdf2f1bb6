import APNsSimulator
import Foundation
import TestSupport
import Testing

/// Runs that wait for a person: found too late, or stopped by a breaker. Nine hours pass in the store, not on the clock.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A run that waits for a person` {
    private static let devices = 60

    private func place(_ more: String = "expires_after: 24h\n") throws -> Installation {
        let place = try Installation(devices: Self.devices)
        let devices = try place.fanfare("devices", "import", "devices.csv")
        try #require(devices.status == 0, "\(devices.errors)")
        try place.folder.write(
            "template: note\nalert: {en: {body: Hello}}\ndefault_locale: en\n", to: "templates/note.yaml")
        try write("note", more, to: place)
        return place
    }

    private func write(_ name: String, _ more: String, to place: Installation) throws {
        try place.folder.write(
            "campaign: \(name)\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: note\naudience: everyone\n\(more)",
            to: "campaigns/\(name).yaml")
    }

    /// A process killed in the middle of a run, nine hours ago: a third was answered, all the rest is on the wire.
    private func leave(_ place: Installation, _ arguments: [String]) throws {
        place.simulator.setFaults([FaultRule(when: .always.skipping(20), action: .silence)])
        let program = try RunningProgram(arguments, in: place.folder)
        // All of them, or those that it had not come to would be found as if they had never been tried.
        try program.wait { place.simulator.counts().requests >= Self.devices }
        program.signal(SIGKILL)
        _ = try program.finish()
        place.simulator.setFaults([])
        try place.ageRuns(byHours: 9)
    }

    private func expectEverybodyHadIt(_ place: Installation, sourceLocation: SourceLocation = #_sourceLocation) {
        let accepted = place.simulator.log().filter { $0.status == 200 }.compactMap(\.token)
        #expect(Set(accepted) == Set(place.tokens), sourceLocation: sourceLocation)
    }

    @Test func `a daemon killed in a run and started nine hours later asks`() async throws {
        try await OwnThread.run {
            let place = try place()
            let start = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down) + 1)
            let key = String(start.formatted(.iso8601).dropLast())
            try write(
                "soon", "expires_after: 24h\nschedule: {at: \(key), zone: UTC, late_by_max: 10m}\n", to: place)
            try leave(place, ["serve"])
            let before = place.simulator.counts().requests
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { ["run waits for a person", "run ended"].contains { daemon.errors.contains($0) } }
            let status = try place.fanfare("status", "soon")
            #expect(status.output.contains("State       paused as late: "), "\(status.output)")
            #expect(status.output.contains("late_by_max is 10m"))
            #expect(try place.fanfare("status", "soon", "--json").output.contains(#""halt" : "late""#))
            let report = try place.fanfare("report", "soon", "--format", "json")
            #expect(report.output.contains(#""halt" : "late""#), "\(report.output)\(report.errors)")
            #expect(try place.fanfare("report", "soon", "--check").output.contains("The counts balance."))
            let schedule = try place.fanfare("schedule")
            #expect(schedule.output.contains("waits for a person:\n  run 1: soon, occurrence"), "\(schedule.output)")
            #expect(try place.fanfare("schedule", "--json").output.contains(#""halt" : "late""#))
            #expect(try !place.fanfare("schedule", "note").output.contains("waits"))
            #expect(try place.fanfare("audit", "soon").output.contains("run_late"))
            let occurrence = key.hasSuffix(":00") ? String(key.dropLast(3)) : key
            for more in [[], ["--json"], ["--no-wait"], ["--wait"]] {
                let again = try Program.run(
                    ["run", "soon", "--occurrence", occurrence, "--yes"] + more, in: place.folder)
                #expect(again.status == 76, "\(more): \(again.errors)")
                #expect(again.errors.contains("`fanfare resume 1` sends them, `fanfare cancel 1` ends the run"))
            }
            #expect(place.simulator.counts().requests == before)
            let resumed = try place.fanfare("resume", "soon")
            #expect(resumed.status == 0, "\(resumed.errors)")
            expectEverybodyHadIt(place)
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
        }
    }

    @Test func `the same command asks as well, and cancel ends it`() async throws {
        try await OwnThread.run {
            let place = try place()
            try leave(place, ["run", "note", "--occurrence", "a", "--yes"])
            let before = place.simulator.counts().requests
            for command in [["run", "note", "--occurrence", "a", "--yes"], ["run", "--due"]] {
                let found = try Program.run(command, in: place.folder)
                // The second time it is known, and a pass over what is due leaves it alone.
                #expect(found.status == (command.contains("--due") ? 0 : 76), "\(found.errors)")
            }
            #expect(try place.fanfare("resume", "note", "--no-send").output.contains("State       running"))
            try place.change("UPDATE run SET heartbeat_at = heartbeat_at - 9 * 3600000")
            let pass = try place.fanfare("run", "--due")
            #expect(pass.status == 76 && pass.output.contains("paused as late: "), "\(pass.output)\(pass.errors)")
            #expect(place.simulator.counts().requests == before)
            let cancelled = try place.fanfare("cancel", "note")
            #expect(cancelled.output.contains("0 pending, 0 in flight"), "\(cancelled.output)\(cancelled.errors)")
            #expect(try place.fanfare("run", "note", "--occurrence", "a", "--yes").status == 0)
            #expect(place.simulator.counts().requests == before)
        }
    }

    @Test func `who says resume before anybody looked is taken at their word`() async throws {
        try await OwnThread.run {
            let place = try place()
            try leave(place, ["run", "note", "--occurrence", "a", "--yes"])
            let resumed = try place.fanfare("resume", "note")
            #expect(resumed.status == 0, "\(resumed.errors)")
            expectEverybodyHadIt(place)
        }
    }

    @Test func `silent pushes past their expiry end as expired when they are let go on`() async throws {
        try await OwnThread.run {
            let place = try place()
            try place.folder.write("template: wake\ncustom: {a: 1}\n", to: "templates/wake.yaml")
            try place.folder.write(
                """
                campaign: wake
                topic: \(Installation.topic)
                push_type: background
                template: wake
                audience: everyone
                expires_after: 30m

                """, to: "campaigns/wake.yaml")
            try leave(place, ["run", "wake", "--occurrence", "a", "--yes"])
            #expect(try place.fanfare("run", "wake", "--occurrence", "a", "--yes").status == 76)
            let before = place.simulator.counts().requests
            let resumed = try place.fanfare("resume", "wake")
            // All the rest, two thirds, was on the wire: in doubt, and too late to be sent again.
            #expect(resumed.status == 76 && resumed.errors.contains("ended unknown"), "\(resumed.errors)")
            #expect(resumed.output.contains("Interrupted"), "\(resumed.output)")
            #expect(place.simulator.counts().requests == before)
            #expect(try place.fanfare("report", "wake", "--check").output.contains("The counts balance."))
        }
    }

    @Test func `a breaker's pause ends with resume alone`() async throws {
        try await OwnThread.run {
            let place = try place()
            place.simulator.setFaults([FaultRule(when: .always, action: .answer(status: 400, reason: "BadTopic"))])
            let run = ["run", "note", "--occurrence", "a", "--yes"]
            let stopped = try Program.run(run, in: place.folder)
            #expect(stopped.status == 76, "\(stopped.errors)")
            #expect(stopped.errors.contains("BadTopic") && stopped.errors.contains("fanfare resume 1"))
            #expect(stopped.output.contains("State      paused by a breaker: "), "\(stopped.output)")
            place.simulator.setFaults([])
            let before = place.simulator.counts().requests
            for more in [[], ["--json"], ["--wait"]] {
                #expect(try Program.run(run + more, in: place.folder).status == 76)
            }
            #expect(try place.fanfare("run", "--due").output == "nothing is due\n")
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            #expect(try Program.run(run + ["--no-wait"], in: place.folder).status == 76)
            #expect(place.simulator.counts().requests == before)
            let resumed = try place.fanfare("resume", "note")
            #expect(resumed.status == 0, "\(resumed.errors)")
            expectEverybodyHadIt(place)
            daemon.signal(SIGTERM)
            _ = try daemon.finish()
        }
    }

    @Test func `what APNs' absence paused goes on with the same command, beside a daemon too`() async throws {
        try await OwnThread.run {
            let place = try place()
            try place.configure(production: "127.0.0.1:1")
            let run = ["run", "note", "--occurrence", "a", "--yes"]
            #expect(try Program.run(run, in: place.folder).status == 69)
            let status = try place.fanfare("status").output
            #expect(status.contains("paused because APNs cannot be reached, retrying: "), "\(status)")
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            #expect(try Program.run(run + ["--no-wait"], in: place.folder).status == 69)
            try place.configure()
            let again = try Program.run(run, in: place.folder)
            #expect(again.status == 0, "\(again.errors)")
            expectEverybodyHadIt(place)
            daemon.signal(SIGTERM)
            _ = try daemon.finish()
        }
    }

    @Test func `what a missing key paused goes on with the same command once it is there`() async throws {
        try await OwnThread.run {
            let place = try place()
            let at = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down) - 60)
            let key = String(at.formatted(.iso8601).dropLast())
            try write("keyless", "expires_after: 24h\nschedule: {at: \(key), zone: UTC}\n", to: place)
            try place.configure(keyPath: "none.p8")
            let pass = try place.fanfare("run", "--due")
            #expect(pass.status == 77 && pass.output.contains("none.p8"), "\(pass.output)\(pass.errors)")
            #expect(try place.fanfare("status").output.contains("none.p8"))
            try place.configure()
            let occurrence = key.hasSuffix(":00") ? String(key.dropLast(3)) : key
            let again = try place.fanfare("run", "keyless", "--occurrence", occurrence, "--yes")
            #expect(again.status == 0, "\(again.errors)")
            expectEverybodyHadIt(place)
        }
    }

    @Test func `an occurrence that was missed or refused says so on every later call`() async throws {
        try await OwnThread.run {
            let place = try place()
            let now = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down))
            func schedule(_ secondsAgo: Double) -> String {
                "expires_after: 24h\nschedule: {at: \(String((now - secondsAgo).formatted(.iso8601).dropLast())), zone: UTC}\n"
            }
            try write("missed", schedule(3 * 3600), to: place)
            try write("refused", schedule(60) + "guards: {min_reach: 1000}\n", to: place)
            let pass = try place.fanfare("run", "--due")
            #expect(pass.status == 3, "\(pass.output)\(pass.errors)")
            #expect(pass.output.contains("missed: found 3h"), "\(pass.output)")
            #expect(!pass.errors.contains("--occurrence"), "\(pass.errors)")
            #expect(pass.errors.contains("`fanfare run missed` sends now"), "\(pass.errors)")
            #expect(pass.output.contains("guards.min_reach is 1,000"), "\(pass.output)")
            #expect(try place.fanfare("run", "--due").status == 0)
            let expected: [(String, Int32, String)] = [
                ("missed", 3, "was missed: found 3h"), ("refused", 3, "was refused: the run would reach 60 devices"),
            ]
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            for isServed in [true, false] {
                for (campaign, status, words) in expected {
                    let seconds = campaign == "missed" ? 3 * 3600.0 : 60
                    let key = String((now - seconds).formatted(.iso8601).dropLast())
                    let occurrence = key.hasSuffix(":00") ? String(key.dropLast(3)) : key
                    for more in [[], ["--json"], ["--no-wait"], ["--wait"]] {
                        let command = ["run", campaign, "--occurrence", occurrence, "--yes"] + more
                        let result = try Program.run(command, in: place.folder)
                        #expect(result.status == status, "\(command): \(result.errors)")
                        #expect(result.errors.contains(words), "\(result.errors)")
                        let state = #""state" : "\#(campaign == "missed" ? "missed" : "failed")""#
                        #expect(result.output.contains(state) == (more == ["--json"]), "\(result.output)")
                    }
                }
                guard isServed else { break }
                daemon.signal(SIGTERM)
                _ = try daemon.finish()
            }
            #expect(place.simulator.counts().requests == 0)
        }
    }
}
