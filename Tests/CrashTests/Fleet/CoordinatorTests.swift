import Foundation
import Synchronization
import TestSupport
import Testing

/// Tests which daemon of a store starts due occurrences and polls feeds. The coordinator is stopped for longer than the
/// takeover timeout, or killed, in the middle of a poll. The tests count at the simulator, the feed and a webhook
/// receiver.
@Suite(
    .ownThread, .serialized, .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `The coordinator` {
    @Test(arguments: Nightly.rows([SIGSTOP], atNight: [SIGKILL]))
    func `that falls silent is followed within half a minute, and nothing is started twice or never`(
        signal: Int32
    ) async throws {
        let cluster = try await PostgresCluster.shared
        try await OwnThread.run { try Succession(on: cluster).execute(signal) }
    }
}

/// A feed and a webhook receiver.
private final class World: Sendable {
    private struct State {
        /// The feed's items, newest first.
        var items = [0]
        var polls = 0
        var isHeld = false
        var failures = 3
        var acknowledged: [String: Int] = [:]
    }

    private let state = Mutex(State())

    func publish(_ item: Int) { state.withLock { $0.items.insert(item, at: 0) } }
    var polls: Int { state.withLock { $0.polls } }

    /// Withholds the responses to polls until ``releasePolls()``. Returns the number of polls so far.
    func holdPolls() -> Int {
        state.withLock { state in
            state.isHeld = true
            return state.polls
        }
    }

    func releasePolls() { state.withLock { $0.isHeld = false } }
    /// The number of times that each message was accepted, by its id.
    var acknowledged: [String: Int] { state.withLock { $0.acknowledged } }

    func reply(to request: LocalServer.Request) -> LocalServer.Reply {
        if request.path == "/hook" { return taken(request.headers["webhook-id"] ?? "") }
        let items = state.withLock { state in
            state.polls += 1
            return state.items
        }
        let deadline = ContinuousClock.now + Process.longest
        while state.withLock({ $0.isHeld }), ContinuousClock.now < deadline { usleep(10_000) }
        let words = items.map { "<item><title>Item \($0)</title><guid isPermaLink=\"false\">i-\($0)</guid></item>" }
        return .init("<rss version=\"2.0\"><channel><title>News</title>\(words.joined())</channel></rss>")
    }

    private func taken(_ id: String) -> LocalServer.Reply {
        state.withLock { state in
            state.failures -= 1
            if state.failures >= 0 { return .init(500) }
            state.acknowledged[id, default: 0] += 1
            return .init(204)
        }
    }
}

/// Three daemons, occurrences one second apart, a feed and a webhook. The first daemon is stopped or killed in the
/// middle of a poll.
private final class Succession {
    private static let occurrences = 20
    private static let items = 3
    private static let devices = 40
    /// The time from writing the campaigns to the first occurrence, in seconds. The daemons start in this time.
    private static let lead: TimeInterval = 8

    /// The time for which the store reserves a message for the daemon that delivers it, less a margin.
    private static let reservedMs = 50_000

    private let cluster: PostgresCluster
    private let database: String
    private let world = World()
    private let server: LocalServer
    private let installation: Installation
    private let scene: Scene
    private var daemons: [ChildProcess] = []

    init(on cluster: PostgresCluster) throws {
        var scene = Scene(name: "coordinators")
        scene.devices = Self.devices
        scene.runs = Self.occurrences + Self.items
        scene.isOnServer = true
        self.scene = scene
        self.cluster = cluster
        server = try LocalServer { [world] in world.reply(to: $0) }
        installation = try Installation(scene, seed: 1, on: cluster)
        guard case .server(_, let database) = installation.store else { throw POSIXError(.EINVAL) }
        self.database = database
    }

    deinit {
        world.releasePolls()
        for daemon in daemons {
            daemon.signal(SIGCONT)
            daemon.signal(SIGKILL)
            _ = daemon.wait()
        }
    }

    func execute(_ signal: Int32) throws {
        try #require(
            try installation.fanfare("devices", "import", "\(installation.folder)/devices.csv").end == .exited(0))
        try writeFiles()
        try start()
        try wait("two occurrences") { try count("run WHERE campaign LIKE 'at%'") >= 2 }
        // The first daemon has polled the feed, and must not receive the response yet.
        let polls = world.holdPolls()
        for item in 1..<Self.items { world.publish(item) }
        try makeFeedDue(daemons[0])
        try wait("the first one's poll") { world.polls > polls }
        daemons[0].signal(signal)
        let silent = Int(Date().timeIntervalSince1970 * 1_000)
        world.releasePolls()
        try wait("another coordinator") { successor != nil }
        #expect(try vacancy() < 30_000)
        // A poll first creates the runs. Only then is it recorded.
        try wait("its poll") {
            try count("run WHERE campaign = 'feed'") == Self.items - 1 && count("feed WHERE polled_at > \(silent)") == 1
        }
        daemons[0].signal(SIGCONT)
        let silence = Int(Date().timeIntervalSince1970 * 1_000) - silent
        world.publish(Self.items)
        try makeFeedDue(try #require(successor))
        try wait("all runs") { try count("run WHERE state = 'finished'") >= scene.runs }
        let end = daemons.removeFirst().wait(killingAfter: Process.longest)
        #expect(end == (signal == SIGKILL ? .killed(SIGKILL) : .exited(75)))
        // The store still reserves the message that the killed daemon was delivering.
        if signal == SIGKILL { try cluster.sql("UPDATE webhook_message SET next_at = 0", database: database) }
        try wait("an empty outbox") { try count("webhook_message") == 0 }
        try prove(mayTellTwice: signal == SIGKILL || silence > Self.reservedMs)
    }

    private func start() throws {
        daemons.append(try installation.start(["serve"], name: "serve0", machine: "machine0"))
        try wait("the feed's first poll") { try count("feed WHERE is_read") == 1 }
        for index in 1...2 {
            daemons.append(try installation.start(["serve"], name: "serve\(index)", machine: "machine\(index)"))
        }
        try wait("the others") {
            daemons.dropFirst().allSatisfy { $0.errors.contains("another daemon coordinates") }
        }
    }

    private func prove(mayTellTwice: Bool) throws {
        for daemon in daemons { daemon.signal(SIGTERM) }
        for daemon in daemons { #expect(daemon.wait() == .exited(0), "\(daemon.errors.suffix(1_000))") }
        daemons = []
        let verified = try installation.fanfare("verify")
        #expect(verified.end == .exited(0), "\(verified.output)")
        installation.stopSimulator()
        let started = try cluster.sql(
            "SELECT campaign || ' ' || count(*) FROM run GROUP BY campaign ORDER BY 1", database: database
        ).split(separator: "\n").map(String.init)
        let expected = (1...Self.occurrences).map { "\(Self.campaign($0)) 1" } + ["feed \(Self.items)"]
        #expect(started == expected.sorted())
        let proof = Proof(
            scene, try installation.store.record(isWhole: true), try WireLog(folder: installation.folder))
        #expect(proof.violations == [])
        let acknowledged = world.acknowledged
        #expect(acknowledged.count == scene.runs, "each run's end is told")
        let twice = acknowledged.values.count { $0 > 1 }
        #expect(twice == 0 || mayTellTwice && acknowledged.values.allSatisfy { $0 <= 2 }, "\(acknowledged)")
        print("coordinators: \(started.count - 1) occurrences, \(proof.doubles) doubles, \(twice) told twice")
    }

    /// A daemon, other than the first, that has logged its takeover as the coordinator.
    private var successor: ChildProcess? {
        daemons.dropFirst().first { $0.errors.contains("this daemon now coordinates") }
    }

    /// Returns the milliseconds without a coordinator, from the first daemon's last heartbeat. If no daemon has a
    /// heartbeat for some seconds, for example on a stalled machine, the takeover timeout of 10 s restarts.
    private func vacancy() throws -> Int {
        let found = try cluster.sql(
            """
            SELECT max(daemon.started_at) - greatest(
                max(sender.heartbeat_at), (SELECT coalesce(max(until), 0) FROM sender_quiet) - 10000)
            FROM sender, daemon WHERE sender.lost_at IS NOT NULL
            """, database: database)
        return try #require(Int(found), "nobody was taken over")
    }

    /// Makes the feed due. It is polled at most once a minute, so its last poll is moved into the past.
    private func makeFeedDue(_ daemon: ChildProcess) throws {
        try cluster.sql("UPDATE feed SET polled_at = polled_at - 120000", database: database)
        // SIGHUP makes the daemon check the feed immediately.
        daemon.signal(SIGHUP)
    }

    private func count(_ rows: String) throws -> Int {
        Int(try cluster.sql("SELECT count(*) FROM \(rows)", database: database)) ?? 0
    }

    private func wait(_ what: String, until condition: () throws -> Bool) throws {
        let deadline = ContinuousClock.now + Process.longest
        while try !condition() {
            try #require(
                ContinuousClock.now < deadline, "\(what): not in time\n\(daemons.map { $0.errors.suffix(1_500) })")
            usleep(50_000)
        }
    }

    private static func campaign(_ number: Int) -> String { "at\(number + 10)" }

    private func writeFiles() throws {
        let folder = installation.folder
        func write(_ text: String, to name: String) throws {
            try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
        }
        let head = "topic: \(SampleInstallation.topic)\npush_type: alert\nexpires_after: 30m\naudience: everyone\n"
        let first = Date().addingTimeInterval(Self.lead)
        for number in 1...Self.occurrences {
            let name = Self.campaign(number)
            let moment = first.addingTimeInterval(TimeInterval(number)).formatted(.iso8601).prefix(19)
            try write(
                "campaign: \(name)\n\(head)template: ground\nschedule: {at: \"\(moment)\", zone: UTC}\n",
                to: "campaigns/\(name).yaml")
        }
        try write(
            """
            campaign: feed
            \(head)template: news
            variables: {title: ""}
            trigger: {feed: "\(server.url)/feed.xml", every: 1m, variables: {title: item.title}}

            """, to: "campaigns/feed.yaml")
        try write(
            "template: news\ndefault_locale: en\nalert:\n  en: {title: \"{{title}}\", body: News}\n",
            to: "templates/news.yaml")
        try write("0123456789abcdef0123456789abcdef\n", to: "hook.secret")
        chmod("\(folder)/hook.secret", 0o600)
        let configuration = try String(contentsOfFile: "\(folder)/fanfare.yaml", encoding: .utf8)
        try write(
            configuration
                + "feeds: {allow: [\"127.0.0.1\"]}\nwebhooks: [{url: \"\(server.url)/hook\", secret_path: \(folder)/hook.secret}]\n",
            to: "fanfare.yaml")
    }
}
