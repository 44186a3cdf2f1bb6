import Foundation
import TestSupport
import Testing

/// Daemons of several machines on one store, as whoever operates them meets them.
@Suite(.ownThread, .timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `Daemons of several machines` {
    /// As on a machine of its own.
    private static func daemon(_ place: Installation, _ name: String, _ more: [String] = []) throws -> RunningProgram {
        try RunningProgram(
            ["serve"] + more, in: place.folder, environment: ["XDG_STATE_HOME": place.folder.file("state-\(name)")])
    }

    @Test func `are told where their files differ, and none forgets the schedule of a campaign that it never had`()
        async throws
    {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let place = try Installation(devices: 2, store: cluster.url(database))
            try place.importDevices()
            try FileManager.default.copyItem(
                atPath: place.folder.file("campaigns"), toPath: place.folder.file("fewer"))
            let campaign = try place.folder.read("campaigns/refresh-episodes.yaml")
            try place.folder.write(
                campaign.replacing("campaign: refresh-episodes", with: "campaign: nightly")
                    + "\nschedule: {cron: \"0 3 * * *\", zone: Europe/Berlin}\n", to: "campaigns/nightly.yaml")
            try place.folder.write(
                try place.folder.read("fanfare.yaml").replacing("campaigns: campaigns", with: "campaigns: fewer"),
                to: "fewer.yaml")
            let marks = { try cluster.sql("SELECT campaign FROM schedule_mark", database: database) }

            let first = try Self.daemon(place, "1")
            try first.wait { first.errors.contains("files read") }
            let second = try Self.daemon(place, "2", ["--config", "fewer.yaml"])
            try second.wait { second.errors.contains("another daemon coordinates") }
            try first.wait { first.errors.contains("senders have different campaign files") }
            #expect(try marks() == "nightly")
            let status = try place.fanfare("status")
            #expect(
                status.output.contains("warning: ") && status.output.contains("put the same files on all machines"),
                "\(status.output)")
            // Of a sender of another machine the store knows that it is there.
            #expect(!status.output.contains("(unseen)"), "\(status.output)")
            #expect(try place.fanfare("status", "--json").output.contains(#""other_files" : true"#))

            first.signal(SIGKILL)
            _ = try first.finish()
            try second.wait { second.errors.contains("this daemon now coordinates") }
            second.signal(SIGTERM)
            #expect(try second.finish().status == 0)
            #expect(try marks() == "nightly")
            // Who has it still, and sees it deleted, does forget it.
            let third = try Self.daemon(place, "3")
            try third.wait { third.errors.contains("files read") }
            try FileManager.default.removeItem(atPath: place.folder.file("campaigns/nightly.yaml"))
            var shown = ""
            try Patience.wait(for: shown) {
                shown = try place.fanfare("status").output
                return shown.contains(": 3 campaigns")
            }
            // It knows so before it has written that down.
            try Patience.wait(for: "the schedule to be forgotten") { try marks() == "" }
            third.signal(SIGTERM)
            #expect(try third.finish().status == 0)
            #expect(try marks() == "")
        }
    }

    /// As during a rolling change of the configuration, and whichever of them sends.
    @Test func `report to the webhooks of all of them, though their lists differ`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let server = try LocalServer { _ in .init(200) }
            let place = try Installation(devices: 2, store: cluster.url(database))
            try place.importDevices()
            try place.folder.write("0123456789abcdef0123456789abcdef\n", to: "hook.secret")
            for name in ["old", "new"] {
                try place.configure(more: "webhooks: [{url: \"\(server.url)/\(name)\", secret_path: hook.secret}]")
                try place.folder.write(try place.folder.read("fanfare.yaml"), to: "\(name).yaml")
            }
            let first = try Self.daemon(place, "1", ["--config", "new.yaml"])
            try first.wait { first.errors.contains("files read") }
            let second = try Self.daemon(place, "2", ["--config", "old.yaml"])
            try second.wait { second.errors.contains("another daemon coordinates") }
            let run = try place.run("new-podcast", "--occurrence", "a", "--config", "old.yaml")
            #expect(run.status == 0, "\(run.errors)")
            try Patience.wait(for: "both messages") { Set(server.requests.map(\.path)) == ["/new", "/old"] }
            for daemon in [first, second] {
                daemon.signal(SIGTERM)
                #expect(try daemon.finish().status == 0)
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a machine with a copied state folder is refused, and the one it was copied from goes on`()
        async throws
    {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let place = try Installation(devices: 2, store: cluster.url(database))
            try place.importDevices()
            let first = try Self.daemon(place, "1")
            try first.wait { first.errors.contains("files read") }
            try FileManager.default.copyItem(
                atPath: place.folder.file("state-1"), toPath: place.folder.file("state-2"))
            let refused = try Self.daemon(place, "2").finish()
            #expect(refused.status == 78, "\(refused.errors)")
            #expect(refused.errors.contains("the folder is a copy of another machine's"), "\(refused.errors)")
            #expect(try cluster.sql("SELECT count(*) FROM sender WHERE lost_at IS NOT NULL", database: database) == "0")
            first.signal(SIGTERM)
            #expect(try first.finish().status == 0)
        }
    }

    @Test func `whom the server lets in no longer end as wrongly configured, with one line and no password`()
        async throws
    {
        var options = PostgresCluster.Options()
        options.hasFsync = false
        options.hasPort = true
        options.access = ["host all all 127.0.0.1/32 scram-sha-256"]
        let cluster = try await PostgresCluster.own(options)
        try await OwnThread.run {
            try cluster.sql("CREATE ROLE berta LOGIN PASSWORD 'hunter2'")
            try cluster.sql("CREATE DATABASE bertas OWNER berta")
            let place = try Installation(devices: 2, store: "postgres://berta:hunter2@127.0.0.1:\(cluster.port)/bertas")
            try place.importDevices()
            let daemon = try Self.daemon(place, "1")
            try daemon.wait { daemon.errors.contains("files read") }
            // Whom the server does not let in while it starts ends at once.
            try Patience.wait(for: "its first heartbeat") {
                try cluster.sql("SELECT count(*) FROM daemon WHERE heartbeat_at > started_at", database: "bertas")
                    == "1"
            }
            let lines = daemon.errors.split(separator: "\n").count
            try cluster.sql("ALTER ROLE berta PASSWORD 'other'")
            try cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'berta'")
            // It may be let in again, and goes on trying.
            try daemon.wait { daemon.errors.contains("correct the user and password") }
            #expect(daemon.errors.split(separator: "\n").count > lines)
            daemon.signal(SIGTERM)
            let stopped = try daemon.finish()
            let last = stopped.errors.split(separator: "\n").filter { $0.hasPrefix("error: ") }
            // On a busy machine its time to stop may end before it has said so.
            let isOverdue = stopped.status == 0 && stopped.errors.contains("stopped before all work had finished")
            if !isOverdue {
                #expect(
                    stopped.status == 78 && last.count == 1, "\(stopped.status) \(stopped.errors.suffix(2_000))")
                #expect(last.first?.contains("correct the user and password") == true, "\(last)")
            }
            #expect(!stopped.errors.contains("hunter2"))
            let run = try place.run("new-podcast", "--occurrence", "a")
            #expect(run.status == 78 && run.errors.split(separator: "\n").count == 1, "\(run.errors)")
        }
    }
}
