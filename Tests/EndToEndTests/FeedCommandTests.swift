import APNsSimulator
import Foundation
import TestSupport
import Synchronization
import Testing
import WebClient

/// A podcast feed on a local server drives broadcasts to the simulator, without hands.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A podcast feed` {
    private final class Episodes: Sendable {
        private let numbers = Mutex<[Int]>([])

        func set(_ new: [Int]) { numbers.withLock { $0 = new } }

        /// Newest first.
        var document: String {
            let items = numbers.withLock { $0 }.map { number in
                """
                <item><title>\(number == 0 ? "test" : "Episode \(number) &amp; more")</title><guid isPermaLink="false">ep-\(number)</guid>\
                <link>https://example.com/\(number)</link></item>
                """
            }
            return "<rss version=\"2.0\"><channel><title>WenderCast</title>\(items.joined())</channel></rss>"
        }
    }

    private func configure(_ place: Installation, _ url: String) throws {
        try place.folder.write(
            """
            campaign: from-feed
            topic: \(Installation.topic)
            push_type: alert
            template: from-feed
            audience: everyone
            variables: {title: "", link_url: ""}
            trigger:
              feed: \(url)/podcast.xml
              every: 5m
              variables: {title: item.title, link_url: item.link}

            """,
            to: "campaigns/from-feed.yaml")
        try place.folder.write(
            """
            template: from-feed
            default_locale: en
            alert: {en: {title: "{{title}}"}}
            custom: {link_url: "{{link_url}}"}

            """,
            to: "templates/from-feed.yaml")
    }

    @Test func `sends new episodes once and the back catalogue never`() throws {
        let episodes = Episodes()
        let server = try LocalServer { $0.path == "/podcast.xml" ? .init(episodes.document) : .init(404) }
        let place = try Installation(devices: 3) { $0.logsPayloads = true }
        try place.importDevices()
        try configure(place, server.url)
        #expect(try place.fanfare("validate").status == 0)
        episodes.set([2, 1])
        let first = try place.fanfare("feeds", "poll")
        #expect(first.status == 0, "\(first.errors)")
        #expect(
            first.output.contains("from-feed: polled for the first time; its 2 items are treated as old and not sent"))
        episodes.set([3, 2, 1])
        let early = try place.fanfare("feeds", "poll")
        #expect(early.status == 0 && early.errors.contains("from-feed: due at "), "\(early.errors)")
        let shown = try place.fanfare("feeds", "show", "from-feed", "--limit", "2")
        #expect(shown.output.contains("(new)\n  link_url: https://example.com/3\n  title: Episode 3 & more"))
        #expect(shown.output.contains("(seen)\n  link_url: https://example.com/2"), "\(shown.output)\(shown.errors)")
        #expect(place.simulator.counts().requests == 0)
        let second = try place.fanfare("feeds", "poll", "from-feed")
        #expect(second.status == 0, "\(second.output)\(second.errors)")
        let log = place.simulator.log()
        #expect(log.compactMap(\.token).sorted() == place.tokens)
        for entry in log {
            let payload = String(decoding: entry.payload ?? [], as: UTF8.self)
            #expect(payload.contains("Episode 3 & more"))
            #expect(payload.contains("https://example.com/3"))
        }
        let third = try place.fanfare("feeds", "poll", "from-feed")
        #expect(third.output.contains("3 items, 0 new"), "\(third.output)")
        #expect(place.simulator.counts().accepted == 3)
        episodes.set([0, 3, 2, 1])
        let doubtful = try place.fanfare("feeds", "poll", "from-feed")
        #expect(doubtful.output.contains(/from-feed: warning: item-ep-0-[0-9a-f]+: .*test/), "\(doubtful.output)")
        #expect(try place.fanfare("report", "from-feed", "--check").output.contains("The counts balance."))
    }

    @Test func `a run that was cut short goes on with the next poll`() throws {
        let episodes = Episodes()
        let server = try LocalServer { _ in .init(episodes.document) }
        let place = try Installation(devices: 3)
        try place.importDevices()
        try configure(place, server.url)
        _ = try place.fanfare("feeds", "poll")
        episodes.set([1])
        try place.configure(keyPath: "none.p8")
        #expect(try place.fanfare("feeds", "poll", "from-feed").status == 78)
        try place.configure()
        let again = try place.fanfare("feeds", "poll", "from-feed")
        #expect(again.status == 0, "\(again.errors)")
        #expect(place.simulator.counts().accepted == 3)
    }

    @Test func `drives the daemon, which tells its webhook, its metrics and its record`() async throws {
        let episodes = Episodes()
        let server = try LocalServer { $0.path == "/hook" ? .init(204) : .init(episodes.document) }
        let place = try Installation(devices: 3)
        try place.importDevices()
        try configure(place, server.url)
        try place.folder.write("0123456789abcdef0123456789abcdef\n", to: "hook.secret")
        try place.configure(more: "webhooks: [{url: \"\(server.url)/hook\", secret_path: hook.secret}]")
        episodes.set([1])
        let daemon = try RunningProgram(["serve"], in: place.folder)
        try daemon.wait { daemon.errors.contains("treated as old and not sent") }
        episodes.set([2, 1])
        // As if five minutes had passed.
        try place.change("UPDATE feed SET polled_at = polled_at - 300000")
        daemon.signal(SIGHUP)
        try daemon.wait { server.requests.contains { $0.path == "/hook" } }
        #expect(place.simulator.log().compactMap(\.token).sorted() == place.tokens)
        let metrics = try await get("/metrics", of: daemon)
        for line in [
            #"fanfare_reloads_total{result="good"} "#, "fanfare_last_good_reload_timestamp_seconds ",
            #"fanfare_pushes_total{environment="production",push_type="alert",reason="",status="200""#,
        ] {
            #expect(metrics.contains("\n\(line)"), "\(line) is missing in \(metrics)")
        }
        #expect(try await get("/healthz", of: daemon) == "ok\n")
        try place.folder.write(metrics, to: "metrics.txt")
        // Prometheus' own word on it, where it is installed; the grammar is tested everywhere.
        if FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool") {
            let command = ["-c", "promtool check metrics < metrics.txt"]
            let check = try Program.run(command, in: place.folder, program: URL(fileURLWithPath: "/bin/sh"))
            #expect(check.status == 0 && check.errors.isEmpty, "\(check.errors)\(check.output)")
        }
        let audit = try place.fanfare("audit", "--json").output
        #expect(audit.contains(#""kind" : "files_read""#))
        let events = try JSONDecoder().decode([AuditEvent].self, from: Data(audit.utf8))
        let sending = events.filter { ["run_claimed", "run_finished"].contains($0.kind) }
        #expect(sending.count == 2 && sending.allSatisfy { $0.origin == "daemon" }, "\(audit)")
        daemon.signal(SIGTERM)
        #expect(try daemon.finish().status == 0)
        #expect(server.requests.count { $0.path == "/hook" } == 1)
    }

    private struct AuditEvent: Decodable {
        var kind: String
        var origin: String
    }

    private func get(_ path: String, of daemon: RunningProgram) async throws -> String {
        let address = try #require(daemon.errors.firstMatch(of: /address=(127\.0\.0\.1:[0-9]+)/)?.1)
        let answer = try await HTTPClient(addresses: .any).send(WebRequest(.get, "http://\(address)\(path)"))
        return String(decoding: answer.body, as: UTF8.self)
    }

    @Test func `is asked by a timer's pass over what is due, too`() throws {
        let episodes = Episodes()
        let server = try LocalServer { _ in .init(episodes.document) }
        let place = try Installation(devices: 3)
        try place.importDevices()
        try configure(place, server.url)
        #expect(try place.fanfare("run", "--due").output == "nothing is due\n")
        episodes.set([1])
        try place.change("UPDATE feed SET polled_at = polled_at - 300000")
        let second = try place.fanfare("run", "--due")
        #expect(second.status == 0 && second.output.contains("from-feed, occurrence item-"), "\(second.errors)")
        #expect(place.simulator.counts().accepted == 3)
    }

    @Test func `troubles have their exit codes`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        let server = try LocalServer { _ in .init(503) }
        try configure(place, server.url)
        let away = try place.fanfare("feeds", "poll")
        #expect(away.status == 75 && away.errors.contains("podcast.xml responds 503"), "\(away.errors)")
        let none = try place.fanfare("feeds", "poll", "breaking-news")
        #expect(none.status == 65 && none.errors.contains("has no feed"), "\(none.errors)")
        #expect(try place.fanfare("feeds", "show", "from-feeds").status == 66)
    }
}
