import APNsSimulator
import Foundation
import TestSupport
import Testing

/// A campaign that goes to five people every week, and one day to sixty.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The volume brake` {
    private static let devices = 60

    /// With three weeks of history.
    private func place() throws -> Installation {
        let place = try Installation(devices: Self.devices)
        try place.configure(more: "volume_brake: {times: 3, at_least: 10}")
        let lines = place.tokens.enumerated().map { number, token in
            "\(token),production,\(Installation.topic),install-\(number),2026-01-01T00:00:00Z,\(number < 5 ? "few" : "")\n"
        }
        try place.folder.write(
            "token,environment,topic,installation_id,registered_at,tags\n" + lines.joined(), to: "devices.csv")
        let imported = try place.fanfare("devices", "import", "devices.csv")
        try #require(imported.status == 0, "\(imported.errors)")
        try place.folder.write(
            "template: note\nalert: {en: {body: Hello}}\ndefault_locale: en\n", to: "templates/note.yaml")
        try write("note", "tag(\"few\")", to: place)
        for week in 1...3 {
            let run = try place.fanfare("run", "note", "--yes", "--occurrence", "week-\(week)")
            try #require(run.status == 0, "\(run.errors)")
            try place.ageRuns(byHours: 7 * 24)
        }
        try write("note", "everyone", to: place)
        return place
    }

    private func write(_ name: String, _ audience: String, to place: Installation) throws {
        try place.folder.write(
            """
            campaign: \(name)
            topic: \(Installation.topic)
            push_type: alert
            template: note
            audience: \(audience)
            expires_after: 24h

            """, to: "campaigns/\(name).yaml")
    }

    @Test func `a run of twelve times the usual waits for a person, whoever else comes by`() async throws {
        try await OwnThread.run {
            let place = try place()
            let before = place.simulator.counts().requests
            let much = ["run", "note", "--yes", "--occurrence", "all"]
            let plan = try place.fanfare("plan", "note").output
            #expect(plan.contains("Brake") && plan.contains("usual for note on "), "\(plan)")
            #expect(plan.contains("the run would be created paused, and wait for `fanfare resume`"))
            for more in [[], ["--json"], ["--no-wait"]] {
                let run = try place.fanfare(much + more)
                #expect(run.status == 76, "\(run.errors)")
                #expect(run.errors.contains("would send 60; usual for note on "), "\(run.errors)")
                #expect(run.errors.contains("is 5 (median of the last 3); volume_brake allows 3 times as many"))
            }
            #expect(try place.fanfare("run", "--due").status == 0)
            #expect(try place.fanfare("status", "4").output.contains("paused by the volume brake: would send 60"))
            #expect(try place.fanfare("status", "4", "--json").output.contains(#""halt" : "volume""#))
            #expect(try place.fanfare("schedule").output.contains("waits for a person:\n  run 4: note"))
            // A daemon that is started, and one after it, send what is as usual, and this not.
            try write("other", "tag(\"few\")", to: place)
            for number in 1...2 {
                let daemon = try RunningProgram(["serve"], in: place.folder)
                try daemon.wait { daemon.errors.contains("files read") }
                let usual = try place.fanfare("run", "other", "--yes", "--occurrence", "\(number)")
                #expect(usual.status == 0, "\(usual.errors)")
                daemon.signal(SIGTERM)
                _ = try daemon.finish()
            }
            #expect(place.simulator.counts().requests == before + 2 * 5)

            let resumed = try place.fanfare("resume", "4", "--reason", "it is Christmas")
            #expect(resumed.status == 0, "\(resumed.errors)")
            let got = place.simulator.log().dropFirst(before + 2 * 5).compactMap(\.token)
            #expect(got.count == Self.devices && Set(got) == Set(place.tokens))
            #expect(try place.fanfare("audit", "4").output.contains("it is Christmas"))
            #expect(try place.fanfare("report", "4", "--check").output.contains("The counts balance."))
            #expect(try place.fanfare("verify").status == 0)
        }
    }

    @Test func `a correction goes at once`() async throws {
        try await OwnThread.run {
            let place = try place()
            try place.configure()
            #expect(try place.fanfare("run", "note", "--yes", "--occurrence", "all").status == 0)
            try place.configure(more: "volume_brake: {times: 3, at_least: 10, max_growth: 10%}")
            try place.folder.write(
                "template: other\nalert: {en: {body: Hello again}}\ndefault_locale: en\n", to: "templates/other.yaml")
            let correction = try place.fanfare("correct", "4", "--template", "other", "--yes")
            #expect(correction.status == 0, "\(correction.errors)")
        }
    }
}
