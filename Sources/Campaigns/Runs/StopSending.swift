package import Model
package import Senders
package import Store

/// Stops sending immediately, for everything, a campaign or a run, and lifts such stops.
///
/// The stop file is written first: every sender of this machine watches it, and it needs no store. The record in the
/// store follows: other senders learn of the stop from the record, which outlives the file. A stop is lifted in the
/// reverse order, so that nothing is sent if the lift fails halfway.
package struct StopSending: Sendable {
    /// The maximum number of looks: 15 s in total, for the requests in flight and a margin.
    private static let looksMax = 150
    private static let lookInterval: Duration = .milliseconds(100)
    /// The number of latest events that are searched for notes of senders, and the number of open runs that are
    /// read.
    private static let eventsMax = 1000

    private let store: any RunLog & SenderLog & AuditLog & StopLog
    private let senders: SenderFolder
    private let clock: WallClock

    package init(store: any RunLog & SenderLog & AuditLog & StopLog, senders: SenderFolder, clock: WallClock) {
        self.store = store
        self.senders = senders
        self.clock = clock
    }

    /// Writes a stop to the stop file only, which every sender of this folder obeys. Returns `false` if the file
    /// already had it.
    package static func write(_ order: StopOrder, to senders: SenderFolder) throws -> Bool {
        try senders.stopFile.put(order.redacted)
    }

    private func orders() async throws -> StopOrders {
        StopOrders(try await store.stops().orders + senders.stopFile.read().orders)
    }

    /// Records a stop that was written to the file. Returns the stop in force, which may be an earlier one.
    ///
    /// If the run is over or missing, this removes the stop from the file and throws.
    package func record(_ order: StopOrder, by actor: Actor) async throws -> StopOrder {
        var order = order.redacted
        let written = order.scope
        let run: Int64
        switch order.scope {
        case .all, .campaign:
            _ = try await store.recordStop(order, by: actor, now: clock.now())
            return try await store.stops()[order.scope] ?? order
        case .run(let number): run = number
        case .occurrence(let campaign, let occurrence):
            guard let found = try await store.run(campaign: campaign, occurrence: occurrence) else {
                try senders.stopFile.lift(written)
                throw Failure(.notFound, "no run of \(campaign) for the occurrence \(occurrence) in the store")
            }
            run = found.id
            order.scope = .run(run)
        }
        do {
            try await store.change(run, to: .paused, reason: order.pauseReason, now: clock.now(), by: actor)
        } catch let error as StoreError where !error.isPassing {
            try senders.stopFile.lift(written)
            throw error
        }
        return order
    }

    /// Returns the error for a stop that is in force nowhere.
    ///
    /// - Parameters:
    ///   - file: the path of the stop file.
    ///   - fileFault: why the file cannot be written. `nil` if it was, and the stop is not in force for another reason.
    package static func nothingIsStopped(
        _ error: any Error, file: String, fileFault: (any Error)?
    ) -> any Error {
        guard let failure = Failure(error) else { return error }
        let why = failure.messages.joined(separator: "; ")
        guard let fileFault else { return Failure(failure.kind, "NOTHING IS STOPPED: \(why)") }
        return Failure(
            failure.kind,
            "NOTHING IS STOPPED: the stop file cannot be written (\(fileFault)), and the store did not record the stop "
                + "(\(why)). To stop everything, stop the daemon (`systemctl stop fanfare`), or run as root: touch \(file)"
        )
    }

    /// Writes a stop to the file and to the store. One of the two is enough.
    ///
    /// - If the store is unavailable, only the file has the stop: senders obey it, but it is not recorded yet.
    /// - If the file cannot be written, senders learn of the stop from the store within seconds.
    ///
    /// - Parameter waits: whether to wait until no process sends any more, for at most 15 s.
    package func execute(_ order: StopOrder, by actor: Actor, waits: Bool) async throws -> StopResult {
        let path = senders.stopFile.path
        var fileFault: (any Error)?
        do { _ = try Self.write(order, to: senders) } catch { fileFault = error }
        do {
            let inForce = try await record(order, by: actor)
            let went = waits ? try await whatWent(in: order) : nil
            return StopResult(inForce, file: path, went: went, isRecorded: true)
        } catch let error as StoreError where error.isPassing {
            if let fileFault { throw Self.nothingIsStopped(error, file: path, fileFault: fileFault) }
            return StopResult(order.redacted, file: path, went: nil, isRecorded: false)
        }
    }

    /// Returns the stops in force, the oldest first. If the store is unavailable, returns the stops of the file.
    package func inForce() async -> [StopInForce] {
        let recorded = (try? await store.stops().orders) ?? []
        var found: [StopInForce] = []
        for order in StopOrders(recorded + senders.stopFile.read().orders).orders {
            found.append(StopInForce(order: order, runs: (try? await told(of: order)) ?? []))
        }
        return found
    }

    /// The reports of the senders after a stop.
    package struct Went: Sendable {
        /// Whether every sender has confirmed the stop and recorded its responses, or may start nothing any more.
        package var isQuiet: Bool
        package var runs: [StoppedRunResult]
        package var unconfirmed: [UnconfirmedSender]
    }

    /// A sender at a run.
    private struct Participation: Hashable {
        var run: Int64
        var name: String

        init(_ sender: SenderAtRun) { (run, name) = (sender.run, sender.name) }
    }

    /// Waits until every sender of a stopped run has confirmed the stop, or its right to send has ended; for 15 s at
    /// most.
    package func whatWent(in order: StopOrder) async throws -> Went {
        var looks = 0
        var seen: [Participation: SenderAtRun] = [:]
        while true {
            let runs = try await open(in: order)
            let left = try await store.senders(at: runs.map(\.id))
            let present = Set(left.map(Participation.init))
            for sender in left { seen[Participation(sender)] = sender }
            let isBusy =
                store.isShared
                ? left.contains(where: \.mayStart) : runs.contains { $0.owner.map(senders.isAlive) ?? false }
            if !isBusy || looks >= Self.looksMax {
                let gone = try await goneWithoutAWord(seen.filter { !present.contains($0.key) }.values, order, of: runs)
                let names = Dictionary(grouping: left + gone, by: \.name).sorted { $0.key < $1.key }
                return Went(
                    isQuiet: !isBusy, runs: try await told(of: order),
                    unconfirmed: names.map { UnconfirmedSender($1[0], runs: $1.map(\.run)) })
            }
            looks += 1
            await clock.sleep(Self.lookInterval)
            try Task.checkCancellation()
        }
    }

    /// Ends a stop of everything or of a campaign, in the store and in the file.
    package func lift(_ scope: StopOrder.Scope, reason: String, by actor: Actor) async throws -> LiftResult {
        let reason: String = try RecordedReason.checked(reason)
        let file = senders.stopFile
        let written = file.read()[scope]
        // If the store does not have this stop yet, record it first, so that the audit log shows which stop ends.
        if let written { _ = try await store.recordStop(written, by: Actor(written.by), now: clock.now()) }
        let recorded = try await store.liftStop(scope, inFile: written, reason: reason, by: actor, now: clock.now())
        if let written { try file.lift(written) }
        guard let ended = recorded ?? written else {
            throw Failure(.invalidData, "\(scope.summary) is not stopped; nothing was changed")
        }
        return LiftResult(ended, reason: reason, by: actor.name, still: try await orders())
    }

    /// Ends the stop of one run in the file. This needs no store, because the run may be absent, or the store
    /// unavailable. A recorded pause stays until the run is resumed.
    ///
    /// Returns `nil` if the file holds no stop of this scope.
    package static func lift(
        ofRun scope: StopOrder.Scope, reason: String, by actor: Actor, in senders: SenderFolder
    ) throws -> (order: StopOrder, result: LiftResult)? {
        let reason: String = try RecordedReason.checked(reason)
        let file = senders.stopFile
        guard let order = file.read()[scope], try file.lift(scope) else { return nil }
        return (order, LiftResult(order, reason: reason, by: actor.name, still: file.read()))
    }

    /// Records that the stop of one run has left the file.
    package func recordLift(_ order: StopOrder, reason: String, by actor: Actor) async throws {
        let reason: String = try RecordedReason.checked(reason)
        try await store.recordEvent(
            kind: .stopLifted, run: nil, actor: actor, detail: order.lifted(reason: reason), now: clock.now())
    }

    private func open(in order: StopOrder) async throws -> [Run] {
        let all = StopOrders([order])
        if case .run(let run) = order.scope { return [try await store.run(run)].compactMap(\.self) }
        return try await store.runs(
            RunFilter(states: [.running, .paused, .cancelled], includesTests: true), before: nil, limit: Self.eventsMax
        ).filter { all.order(of: $0) != nil }
    }

    /// Returns the senders that left a run that is still open and did not confirm the stop: they were declared dead, or
    /// ended.
    private func goneWithoutAWord(
        _ senders: some Sequence<SenderAtRun>, _ order: StopOrder, of runs: [Run]
    ) async throws -> [SenderAtRun] {
        let isOpen = Set(runs.lazy.filter { $0.state != .cancelled }.map(\.id))
        let candidates = senders.filter { isOpen.contains($0.run) }
        guard !candidates.isEmpty else { return [] }
        let reports = try await reports(of: order)
        return candidates.filter { reports[$0.run]?[$0.name] == nil }.map { sender in
            var sender = sender
            sender.mayStart = false
            return sender
        }
    }

    private func told(of order: StopOrder) async throws -> [StoppedRunResult] {
        try await reports(of: order).sorted { $0.key < $1.key }.map { run, senders in
            StoppedRunResult(
                run: run, campaign: senders.values.first?.campaign ?? "",
                startedAfter: senders.values.reduce(0) { $0 + $1.left })
        }
    }

    /// Returns the notes of the senders, by run and sender's name. If a sender left several notes on a run, the last
    /// one counts.
    private func reports(of order: StopOrder) async throws -> [Int64: [String: (campaign: String, left: Int)]] {
        let covered = StopOrders([order])
        let events = try await store.events(run: nil, since: order.at, limit: Self.eventsMax)
        var left: [Int64: [String: (campaign: String, left: Int)]] = [:]
        for event in events {
            guard let note = StopNote(event), let run = event.run, let campaign = event.campaign,
                covered.order(run: run, campaign: campaign) != nil
            else { continue }
            left[run, default: [:]][event.actor.name] = (campaign, note.left)
        }
        return left
    }
}

extension StopOrder {
    /// The order with its reason redacted and shortened: a person may have pasted a device's token into it.
    fileprivate var redacted: StopOrder {
        var order = self
        order.reason = reason.map(RecordedReason.cut)
        return order
    }
}

extension FollowRuns {
    /// Throws if a stop is in force, so that no run is created that no sender would send.
    ///
    /// - Parameter campaign: `nil` to consider only a stop of everything.
    package func requireNoStop(campaign: String?) async throws {
        let orders = try await stops()
        guard let order = campaign.map({ orders.order(run: nil, campaign: $0) }) ?? orders[.all] else { return }
        throw Failure(.halted, "nothing was started: \(order.refusal)")
    }
}

/// A stop in force.
package struct StopOrderResult: Codable, Hashable, Sendable {
    /// `all`, `campaign new-podcast` or `run 17`.
    package var scope: String
    package var by: String
    package var at: String
    package var reason: String?
    /// The command that ends the stop.
    package var remedy: String

    package init(_ order: StopOrder) {
        scope = order.scope.text
        by = order.by
        at = order.at.iso8601
        reason = order.reason
        remedy = order.scope.remedy
    }
}

/// A run, and the requests that its senders started between the stop and the moment when they noticed it.
package struct StoppedRunResult: Codable, Hashable, Sendable {
    package var run: Int64
    package var campaign: String
    /// The number of requests started after the moment of the stop.
    package var startedAfter: Int
}

/// A sender that has not confirmed a stop: its machine or its connection to the store is gone, or it waits for
/// responses.
package struct UnconfirmedSender: Codable, Hashable, Sendable {
    /// Host and process id.
    package var process: String
    /// Its last heartbeat, in ISO 8601 and UTC.
    package var heardAt: String
    /// Whether it still has the right to send.
    package var mayStart: Bool
    package var runs: [Int64]

    init(_ sender: SenderAtRun, runs: [Int64]) {
        process = ProcessName.shown(sender.name)
        heardAt = sender.heardAt.iso8601
        mayStart = sender.mayStart
        self.runs = runs
    }

    /// The state of the sender, for a person.
    package var summary: String {
        mayStart
            ? "\(process) has not confirmed the stop yet: it waits for responses, or has not read the stop"
            : "\(process) has not confirmed the stop: its last heartbeat was at \(heardAt). It starts nothing more; "
                + "requests that it started after the stop are not counted. Check that machine and its network"
    }
}

/// A stop in force, with the reports of its senders.
package struct StopInForce: Sendable {
    package var order: StopOrder
    package var runs: [StoppedRunResult]
}

/// The stable shape of the stops in force.
package struct StopsResult: Codable, Hashable, Sendable {
    package struct Item: Codable, Hashable, Sendable {
        package var stop: StopOrderResult
        /// The runs that were being sent.
        package var runs: [StoppedRunResult]
    }

    /// The oldest first.
    package var items: [Item]

    package init(_ stops: [StopInForce]) {
        items = stops.map { Item(stop: StopOrderResult($0.order), runs: $0.runs) }
    }
}

/// The stable shape of `stop --json`.
package struct StopResult: Codable, Hashable, Sendable {
    package var stop: StopOrderResult
    /// The file that every sender of this machine watches.
    package var file: String
    /// `false` if the store was unavailable. The next sender, or this command again, records the stop.
    package var recorded: Bool
    /// Whether every sender has confirmed the stop and has its responses. Absent without a wait, or if the store was
    /// unavailable.
    package var quiet: Bool?
    /// The runs that were being sent; absent like `quiet`.
    package var runs: [StoppedRunResult]?
    /// Senders that have not confirmed the stop; absent if there are none.
    package var unconfirmed: [UnconfirmedSender]?

    package init(_ order: StopOrder, file: String, went: StopSending.Went?, isRecorded: Bool) {
        stop = StopOrderResult(order)
        self.file = file
        recorded = isRecorded
        quiet = went?.isQuiet
        runs = went?.runs
        unconfirmed = went.flatMap { $0.unconfirmed.isEmpty ? nil : $0.unconfirmed }
    }
}

/// The stable shape of `stop --lift --json`.
package struct LiftResult: Codable, Hashable, Sendable {
    /// The stop that ended.
    package var stop: StopOrderResult
    package var liftedBy: String
    package var liftedFor: String
    /// The stops still in force.
    package var still: [StopOrderResult]

    package init(_ order: StopOrder, reason: String, by actor: String, still: StopOrders) {
        stop = StopOrderResult(order)
        liftedBy = actor
        liftedFor = reason
        self.still = still.orders.map(StopOrderResult.init)
    }
}
