import APNsSimulator
import Foundation
import TestSupport
import Testing

/// A database that its server's tools have put back, as it was before a scheduled campaign went out.
@Suite(.ownThread, .timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `A restored database` {
    private static let campaign = "morning"

    /// Writes a campaign whose only start was five minutes ago, in the style of its file.
    private func schedule(_ place: Installation) throws {
        let start = Date(timeIntervalSinceNow: -300).formatted(
            Date.ISO8601FormatStyle(timeZone: .gmt).year().month().day().time(includingFractionalSeconds: false))
        try place.folder.write(
            "template: note\nalert: {en: {body: Hello}}\ndefault_locale: en\n", to: "templates/note.yaml")
        try place.folder.write(
            """
            campaign: \(Self.campaign)
            topic: \(Installation.topic)
            push_type: alert
            template: note
            audience: everyone
            expires_after: 24h
            schedule: {at: "\(start.prefix(16))", zone: UTC, late_by_max: 2h}
            """, to: "campaigns/morning.yaml")
    }

    @Test func `sends nothing of the lost time again once it is marked`() async throws {
        let cluster = try await PostgresCluster.shared
        let original = try await cluster.makeDatabase()
        try await OwnThread.run {
            let place = try Installation(devices: 20, store: cluster.url(original))
            try place.importDevices()
            try schedule(place)
            let dump = "\(original)_restored"
            _ = try cluster.sql("CREATE DATABASE \(dump) TEMPLATE \(original)")
            let began = Date(timeIntervalSinceNow: -1).formatted(.iso8601)
            let due = try place.fanfare("run", "--due")
            #expect(due.status == 0 && place.simulator.log().count == 20, "\(due.errors)")

            let restored = ["FANFARE_STORE": cluster.url(dump)]
            func fanfare(_ words: String...) throws -> Program.Result {
                try Program.run(words, in: place.folder, environment: restored)
            }
            let told = try fanfare("restore", "x.dump", "--yes")
            #expect(told.status == 78 && told.errors.contains("fanfare restore --mark --since TIME"), "\(told.errors)")
            let faults = [
                ("tomorrow", "write the time at which the dump began"), ("2999-01-01T00:00Z", "this is in the future"),
                // The same command would name another time the next time.
                ("3h", "an age names another time in each repetition; write the time at which the dump began"),
                ("3d", "an age names another time"),
            ]
            for (since, fault) in faults {
                let refused = try fanfare("restore", "--mark", "--since", since, "--yes")
                #expect(refused.status == 64 && refused.errors.contains(fault), "\(since): \(refused.errors)")
            }
            #expect(try fanfare("restore", "--mark").status == 64)
            #expect(try fanfare("stop", "--all", "--reason", "restored").status == 0)
            let marked = try fanfare("restore", "--mark", "--since", began, "--yes")
            #expect(marked.status == 0 && marked.output.contains("marked as restored"), "\(marked)")
            #expect(marked.errors.contains("this store is a backup from \(began.prefix(10))"), "\(marked.errors)")
            let again = try fanfare("restore", "--mark", "--since", began, "--yes", "--json")
            #expect(again.status == 0 && again.output.contains(#""marked" : false"#), "\(again)")
            #expect(try fanfare("stop", "--all", "--lift", "--reason", "checked").status == 0)
            let after = try fanfare("run", "--due")
            #expect(after.errors.contains("it may have been sent already"), "\(after.errors)")
            #expect(place.simulator.log().count == 20)
            let audit = try fanfare("audit", "--kind", "store_restored")
            #expect(audit.output.matches(of: /store_restored/).count == 1, "\(audit.output)")

            // A push of now uses no number of the lost time.
            #expect(try fanfare("run", Self.campaign, "--occurrence", "b", "--yes").status == 0)
            let ids = place.simulator.log().map(\.apnsID)
            #expect(ids.count == 40 && Set(ids).count == 40)
            #expect(try fanfare("verify").status == 0)
            _ = try cluster.sql("DROP DATABASE \(dump)")
        }
    }

    @Test func `is the only kind of store to mark`() async throws {
        try await OwnThread.run {
            let place = try Installation(devices: 1)
            try place.importDevices()
            let refused = try place.fanfare("restore", "--mark", "--since", "2026-11-29T02:00Z", "--yes")
            #expect(refused.status == 78 && refused.errors.contains("--mark is for a store on PostgreSQL"))
        }
    }
}
