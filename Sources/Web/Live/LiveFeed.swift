import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model
import ServiceLifecycle
import Synchronization

/// Builds the live state of a run, or of the latest runs. It builds a state at most once a second for all viewers of a
/// time zone, and only while a page shows it.
final class LiveFeed: Sendable {
    /// The subject that a page shows.
    enum Subject: Hashable, Sendable {
        case list(RunListQuery)
        case run(Int64)
    }

    /// A state in the form in which it is sent.
    struct Message: Sendable {
        var state: LiveState
        /// The state in JSON, on one line.
        var text: String
        /// The entity tag of the text. A different text has a different tag.
        var tag: String
    }

    /// The maximum number of runs on a page of the list.
    static let runsShown = 50
    private static let buildEvery: Duration = .seconds(1)
    /// The time for which the counted figures of a run are shown. They are more expensive than its counts.
    private static let figuresKept: Duration = .seconds(5)

    /// A state holds times in the zone of its viewers.
    private struct Key: Hashable {
        var subject: Subject
        var zone = ViewerZone.current
    }

    private struct Entry {
        var message: Message
        var builtAt: Duration
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var building: Set<Key> = []
        var rates = RunRates()
        var figures: [Int64: (figures: RunFigures, state: RunState, builtAt: Duration)] = [:]
    }

    private let cases: UseCases
    private let state = Mutex(State())

    init(cases: UseCases) {
        self.cases = cases
    }

    /// Returns the state, or `nil` if the run does not exist. The state is at most a second old, or older while another
    /// request builds a newer one.
    func message(_ subject: Subject) async throws -> Message? {
        let (key, now) = (Key(subject: subject), cases.uptime)
        let known = state.withLock { state -> Message? in
            let entry = state.entries[key]
            if let entry, now - entry.builtAt < Self.buildEvery || state.building.contains(key) {
                return entry.message
            }
            state.building.insert(key)
            return nil
        }
        if let known { return known }
        defer { state.withLock { _ = $0.building.remove(key) } }
        guard let live = try await live(subject) else { return nil }
        let text = try ResultJSON.line(live)
        let message = Message(state: live, text: text, tag: EntityTag.of(text))
        state.withLock { state in
            state.entries[key] = Entry(message: message, builtAt: now)
            // Drop the states that no page has shown for 60 s.
            state.entries = state.entries.filter { now - $0.value.builtAt < .seconds(60) }
            state.rates.forget(before: now - .seconds(60))
            state.figures = state.figures.filter { now - $0.value.builtAt < .seconds(60) }
        }
        return message
    }

    /// Returns a run as it is now, with its pace.
    func view(of run: Run) async throws -> RunView {
        let held = try await cases.runs.inDetail(run)
        let isStopped = try await cases.runs.stops().order(of: run) != nil
        return RunView(
            held.result, rate: rate(held.result),
            waits: cases.waitSummaries(of: held, zone: ViewerZone.current), isStopped: isStopped)
    }

    /// Returns a page of the list of runs.
    func list(_ query: RunListQuery) async throws -> (found: FoundRuns, views: [RunView]) {
        let stops = try await cases.runs.stops()
        let found = try await cases.found(query.search, at: query.position, limit: Self.runsShown)
        return (
            found,
            found.runs.map { run in
                let result = cases.runs.held(run).result
                return RunView(result, rate: rate(result), isStopped: stops.order(of: run) != nil)
            }
        )
    }

    private func live(_ subject: Subject) async throws -> LiveState? {
        switch subject {
        case .list(let query): try await list(query).views.live
        case .run(let id):
            if let run = try await cases.runs.run(id) { try await live(run) } else { nil }
        }
    }

    private func live(_ run: Run) async throws -> LiveState {
        var live = try await view(of: run).live
        try await figures(of: run, isLive: true).add(to: &live)
        return live
    }

    /// Returns the counted figures of a run.
    ///
    /// - Parameter isLive: whether figures of the last seconds are good enough, if the run is still in the same state.
    func figures(of run: Run, isLive: Bool) async throws -> RunFigures {
        let now = cases.uptime
        let kept = state.withLock { $0.figures[run.id] }
        if isLive, let kept, kept.state == run.state, now - kept.builtAt < Self.figuresKept { return kept.figures }
        let figures = try await RunFigures(run, cases)
        state.withLock { $0.figures[run.id] = (figures, run.state, now) }
        return figures
    }

    private func rate(_ result: RunResult) -> Double? {
        let counts = result.counts
        // A suppressed delivery takes no time, and so says nothing about the speed.
        let sent = counts.accepted + counts.rejected + counts.unknown
        let now = cases.uptime
        return state.withLock { $0.rates.rate(of: result.run, sent: sent, at: now) }
    }
}

extension LiveFeed {
    private static let beatEvery: Duration = .seconds(5)
    /// The last event of a stream. The page reloads when it arrives.
    static let end = "event: end\ndata: \n\n"
    private static let type = "text/event-stream"

    static func isStream(_ response: Response) -> Bool { response.headers[.contentType] == type }

    /// Returns a stream of server-sent events: a state, a beat or `end`. A state follows each change, at most once a
    /// second, without the parts that did not change since the stream's state before. A beat follows 5 s without an
    /// event. `end` follows if nothing will change any more, if the run is gone, or if the server stops. The stream
    /// also ends when the client leaves.
    func stream(_ subject: Subject, _ context: WebContext) -> Response {
        // The body is written after the request's own scope has ended.
        let zone = ViewerZone.current
        let body = ResponseBody { [self] writer in
            // Only one task at a time uses the writer: the task that watches the client writes, and this task finishes
            // after it.
            nonisolated(unsafe) var open = writer
            try await context.whileClientStays { [self] in
                try await ViewerZone.$current.withValue(zone) {
                    try await write(subject) { text in try await open.write(ByteBuffer(string: text)) }
                }
            }
            try await open.finish(nil)
        }
        return Response(
            status: .ok,
            headers: [
                .contentType: Self.type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
            ], body: body
        ).with("X-Accel-Buffering", "no")
    }

    private func write(_ subject: Subject, _ send: (String) async throws -> Void) async throws {
        // The time after which a browser reconnects, in milliseconds.
        try await send("retry: 3000\n\n")
        var tag = ""
        var shown: [String: String] = [:]
        var said = cases.uptime
        // A page that stays open must not keep the process from stopping.
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            guard let message = try await message(subject) else { break }
            if message.tag != tag {
                tag = message.tag
                said = cases.uptime
                let text = shown.isEmpty ? message.text : try ResultJSON.line(message.state.without(shown))
                shown = message.state.parts
                try await send("event: state\ndata: \(text)\n\n")
            } else if cases.uptime - said >= Self.beatEvery {
                said = cases.uptime
                try await send("event: beat\ndata: \n\n")
            }
            if message.state.isOver { break }
            await cases.sleep(Self.buildEvery)
        }
        try await send(Self.end)
    }
}
