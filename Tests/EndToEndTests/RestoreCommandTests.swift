import APNsSimulator
import Foundation
import TestSupport
import Testing

/// A backup of the middle of a run, restored after the run has ended.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A restored backup` {
    /// An installation whose run has reached each device, with a backup of its middle.
    private func place() throws -> Installation {
        let place = try Installation.slow()
        let run = try place.startSlowRun()
        let backup = try place.fanfare("backup", "b.sqlite")
        #expect(backup.status == 0, "\(backup.errors)")
        // Not while it sends.
        let refused = try place.fanfare("restore", "b.sqlite", "--yes")
        #expect(refused.status == 75 && refused.errors.contains("nothing was restored"), "\(refused.errors)")
        place.simulator.setFaults([])
        try #require(try run.finish().status == 0)
        try place.expectOnceEach()
        return place
    }

    /// Nothing that a timer or a daemon does sends any of it again.
    private func expectHeld(_ place: Installation) throws {
        let asked = place.simulator.log().count
        let status = try place.fanfare("status", "slow")
        #expect(status.output.contains("paused as restored"), "\(status.output)")
        let run = try place.fanfare(Installation.slowRun)
        #expect(run.status == 76 && run.errors.contains("may have gone out since"), "\(run.errors)")
        #expect(try place.fanfare("run", "--due").status == 0)
        #expect(place.simulator.log().count == asked)
        let audit = try place.fanfare("audit")
        #expect(audit.output.contains("store_restored"), "\(audit.output)")
    }

    @Test func `by the command sends nothing by itself, and keeps the store of before`() async throws {
        try await OwnThread.run {
            let place = try place()
            let restored = try place.fanfare("restore", "b.sqlite", "--yes", "--json")
            #expect(restored.status == 0, "\(restored.errors)")
            #expect(restored.output.contains(#""open_runs" : ["#), "\(restored.output)")
            #expect(restored.errors.contains("1 (slow/a) was open then and is paused"), "\(restored.errors)")
            let names = try FileManager.default.contentsOfDirectory(atPath: place.folder.path)
            let aside = try #require(names.first { $0.hasPrefix("fanfare.sqlite.before-") && $0.hasSuffix("Z") })
            #expect(try place.fanfare("verify", "--store", aside).status == 0)
            try expectHeld(place)
            #expect(try place.fanfare("verify").status == 0)
            #expect(try place.fanfare("cancel", "1").status == 0)
            #expect(try place.fanfare("report", "slow", "--check").output.contains("The counts balance."))
        }
    }

    @Test func `put in place by hand is found by the first command, also by a resume`() async throws {
        try await OwnThread.run {
            let place = try place()
            for end in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: place.folder.file("fanfare.sqlite\(end)"))
            }
            try FileManager.default.copyItem(
                atPath: place.folder.file("b.sqlite"), toPath: place.folder.file("fanfare.sqlite"))
            let asked = place.simulator.log().count
            let resumed = try place.fanfare("resume", "1")
            #expect(resumed.status == 76 && resumed.errors.contains("was not resumed"), "\(resumed.errors)")
            #expect(place.simulator.log().count == asked)
            try expectHeld(place)
            // Now they know.
            #expect(try place.fanfare("resume", "1").status == 0)
            #expect(place.simulator.log().count > asked)
        }
    }

    /// A person who approves cannot know that the stage went out after the backup.
    @Test func `approves no stage before a person has confirmed the gap`() async throws {
        try await OwnThread.run {
            let place = try Installation(devices: 100)
            try place.importDevices()
            try place.folder.write(
                "template: note\nalert: {en: {body: Hello}}\ndefault_locale: en\n", to: "templates/note.yaml")
            let seeds = "seeds: 'installation_id = \"install-1\"'"
            try place.folder.write(
                "campaign: note\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: note\naudience: everyone\n"
                    + "expires_after: 24h\nstages: [{\(seeds)}, {rest: true, needs: approval}]\n",
                to: "campaigns/note.yaml")
            let run = try place.fanfare("run", "note", "--occurrence", "a", "--yes")
            try #require(run.errors.contains("fanfare approve 1 --stage 2"), "\(run.errors)")
            #expect(try place.fanfare("backup", "b.sqlite").status == 0)
            #expect(try place.fanfare("approve", "1", "--stage", "2").status == 0)
            #expect(try place.fanfare("run", "note", "--occurrence", "a").status == 0)
            let sent = place.simulator.log().count
            let restored = try place.fanfare("restore", "b.sqlite", "--yes")
            #expect(restored.errors.contains("waits for that person again after `resume`"), "\(restored.errors)")
            let refused = try place.fanfare("approve", "1", "--stage", "2")
            #expect(refused.status == 76 && refused.errors.contains("the store is a backup from"), "\(refused.errors)")
            let doctor = try place.fanfare("doctor")
            #expect(doctor.output.contains("paused as restored: 1"), "\(doctor.output)")
            let confirmed = try place.fanfare("resume", "1")
            #expect(confirmed.status == 76 && confirmed.errors.contains("is unknown"), "\(confirmed.errors)")
            for words in [["status", "1"], ["approvals"]] {
                let shown = try place.fanfare(words)
                #expect(shown.output.contains("the run comes from a backup"), "\(shown.output)")
            }
            let audit = try place.fanfare("audit", "--kind", "restore_confirmed")
            #expect(audit.output.matches(of: /restore_confirmed/).count == 1, "\(audit.output)")
            #expect(place.simulator.log().count == sent)
            #expect(try place.fanfare("approve", "1", "--stage", "2").status == 0)
            #expect(try place.fanfare("run", "note", "--occurrence", "a").status == 0)
            #expect(place.simulator.log().count > sent)
            #expect(try place.fanfare("audit", "--kind", "restored").status == 64)
        }
    }

    @Test func `that is damaged, or no store, changes nothing`() throws {
        let place = try Installation()
        try place.importDevices()
        try place.folder.write("no store", to: "b.sqlite")
        for file in ["b.sqlite", "devices.csv", "missing.sqlite", "fanfare.sqlite"] {
            let refused = try place.fanfare("restore", file, "--yes")
            #expect(refused.status != 0, "\(file): \(refused.output)")
        }
        #expect(try place.fanfare("verify").status == 0)
        let names = try FileManager.default.contentsOfDirectory(atPath: place.folder.path)
        #expect(!names.contains { $0.contains(".before-") || $0.hasSuffix(".part") }, "\(names)")
    }

    @Test func `does not know whether the day's occurrence was sent, and refuses to start it`() throws {
        let place = try Installation()
        try place.importDevices()
        try place.folder.write(
            "template: note\nalert: {en: {body: Hello}}\ndefault_locale: en\n", to: "templates/note.yaml")
        try place.folder.write(
            "campaign: note\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: note\naudience: everyone\n"
                + "expires_after: 24h\n", to: "campaigns/note.yaml")
        #expect(try place.fanfare("backup", "b.sqlite").status == 0)
        func daily() throws -> Program.Result {
            try Program.run(
                ["run", "note", "--occurrence-by", "day", "--yes"], in: place.folder,
                environment: ["TZ": Program.zoneAtDay])
        }
        let first = try daily()
        #expect(first.status == 0, "\(first.errors)")
        let sent = place.simulator.log().count
        let restored = try place.fanfare("restore", "b.sqlite", "--yes")
        #expect(restored.status == 0, "\(restored.errors)")
        let refused = try daily()
        #expect(refused.status == 3, "\(refused.errors)")
        #expect(place.simulator.log().count == sent)
        let name = try #require(refused.errors.firstMatch(of: /--occurrence (timer-\d{4}-\d\d-\d\d)/)?.1)
        let named = try place.fanfare("run", "note", "--occurrence", String(name), "--yes")
        #expect(named.status == 0 && place.simulator.log().count == 2 * sent, "\(named.errors)")
        // None of its numbers is one of the run that the store does not know.
        #expect(Set(place.simulator.log().map(\.apnsID)).count == 2 * sent)
        let again = try daily()
        #expect(again.status == 0 && place.simulator.log().count == 2 * sent, "\(again.errors)")
    }

    @Test func `that is not back yet is no reason to make an empty store`() throws {
        let place = try Installation()
        try place.importDevices()
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        let path = place.folder.file("fanfare.sqlite")
        #expect(rename(path, path + ".away") == 0)
        for words in [["devices", "import", "devices.csv"], ["serve", "--create"]] {
            let refused = try place.fanfare(words)
            #expect(refused.status == 78 && refused.errors.contains("fanfare.sqlite-senders"), "\(refused.errors)")
        }
        let senders = path + "-senders"
        try FileManager.default.moveItem(atPath: senders, toPath: senders + ".away")
        #expect(rename(path + ".away", path + ".before-20260101T000000Z") == 0)
        let refused = try place.fanfare("devices", "import", "devices.csv")
        #expect(refused.status == 78 && refused.errors.contains("before-20260101T000000Z"), "\(refused.errors)")
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(rename(path + ".before-20260101T000000Z", path + ".away") == 0)
        #expect(try place.fanfare("devices", "import", "devices.csv").status == 0)
    }

    @Test func `is taken back although the silent budget was lowered since`() throws {
        let place = try Installation()
        try place.importDevices()
        let campaign = try place.folder.read("campaigns/refresh-episodes.yaml").split(separator: "\n").map {
            $0.hasPrefix("audience:") ? "audience: everyone" : String($0)
        }
        try place.folder.write(campaign.joined(separator: "\n") + "\n", to: "campaigns/refresh-episodes.yaml")
        let settings = try place.folder.read("fanfare.yaml")
        func configure(limit: Int) throws {
            let connections = "    connections: 1\n"
            let budget = "    silent_budget: {limit: \(limit), window: 1h}\n"
            try place.folder.write(settings.replacing(connections, with: connections + budget), to: "fanfare.yaml")
        }
        try configure(limit: 2)
        for occurrence in ["a", "b"] {
            let sent = try place.run("refresh-episodes", "--occurrence", occurrence)
            #expect(sent.status == 0, "\(sent.errors)")
        }
        #expect(place.simulator.counts().accepted == 2 * place.tokens.count)
        #expect(try place.fanfare("backup", "b.sqlite").status == 0)
        try configure(limit: 1)
        let verified = try place.fanfare("verify")
        #expect(verified.status == 0, "\(verified.output)")
        let restored = try place.fanfare("restore", "b.sqlite", "--yes")
        #expect(restored.status == 0, "\(restored.errors)")
        // A store of an older version has no record of the budget.
        try place.change("DELETE FROM meta WHERE key LIKE 'silent_budget.%'")
        let warned = try place.fanfare("verify")
        #expect(warned.status == 0 && warned.output.contains("warning silent_budget"), "\(warned.output)")
    }
}
