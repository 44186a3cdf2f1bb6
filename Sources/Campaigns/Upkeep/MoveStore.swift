import Foundation
package import Model
import Senders
package import Store

/// Moves a whole store to another place, proves the copy and closes the old store: from SQLite to PostgreSQL, and back.
///
/// The next call continues a move that was interrupted at any step. Memory use does not grow with the store.
package struct MoveStore: Sendable {
    /// The progress of a move.
    package struct Progress: Sendable {
        package enum Phase: Hashable, Sendable {
            case copying
            /// The old store is read again.
            case provingOld
            case provingNew
        }

        package var phase: Phase
        package var table: String
        /// The number of rows in this phase, over all tables.
        package var rows: Int
    }

    private let old: any StoreTransfer & RunLog & RunOwnership & AuditLog & DaemonLog & StopLog & FeedbackLog
    private let new: any StoreTransfer & StoreUpkeep & StopLog
    private let mover: String?
    private let stopsByFile: @Sendable () -> StopOrders
    private let paths: (old: String, new: String)
    private let now: @Sendable () -> Timestamp

    /// - Parameters:
    ///   - old: opened for ``StoreAccess/departing``.
    ///   - new: opened for ``StoreAccess/arriving``.
    ///   - mover: the sender's name of this process. ``giveUp(_:isMoving:)`` checks by that name whether this
    ///     process is alive.
    ///   - stopsByFile: the stops that the old store's `STOP` file holds now.
    package init(
        from old: any AllRoles, to new: any AllRoles, mover: String? = nil,
        stopsByFile: @escaping @Sendable () -> StopOrders = { StopOrders() }, now: @escaping @Sendable () -> Timestamp
    ) {
        self.mover = mover
        self.stopsByFile = stopsByFile
        self.old = old
        self.new = new
        paths = (old.path, new.path)
        self.now = now
    }

    /// Moves the store. Refused while anything is leased, a run has an owner, or a daemon is alive. After a cancelled
    /// move, both stores refuse all use except the next call.
    package func execute(by actor: Actor, progress: @Sendable (Progress) -> Void = { _ in }) async throws -> MoveResult
    {
        // A store that is being moved cannot record them.
        if try await old.departure() == nil, let row = try await old.recordWaitingFeedback().first {
            throw Failure(
                .invalidData,
                "nothing was moved: the reports in row \(row) of the table waiting_feedback cannot be read; save a copy of "
                    + "the row, delete it, and move again")
        }
        let move = try await begin(by: actor)
        let isOpen = try await new.arrival()?.move.endedAt != nil
        if !isOpen {
            try await copy(move, progress)
            let proofs = try await prove(progress)
            let stops = try await stopsToCarry()
            let gap = try await old.restoreGap()
            try await old.endDeparture(move, at: now())
            try await new.endArrival(try await old.highestNumbers(), proofs: proofs, stops: stops, gap: gap, at: now())
            try await carryLateStops(behind: stops, by: actor)
        }
        guard let arrival = try await new.arrival() else { throw other(move) }
        return MoveResult(arrival)
    }

    /// Makes the old store usable again while the new one is incomplete.
    ///
    /// Refused while the mover is known to be alive. A mover on another machine may not be visible from here. Such a
    /// mover fails at its next step, because each step requires that its own move is on record.
    package static func giveUp(
        _ store: any StoreTransfer & StoreUpkeep, isMoving: (String) -> Bool
    ) async throws {
        guard let move = try await store.departure() else {
            throw Failure(.refused, "this store is not being moved; nothing was done")
        }
        if move.endedAt == nil, let mover = move.mover, isMoving(mover) {
            throw StoreError.inUse(
                path: store.path, reason: "\(ProcessName.shown(mover)) is moving the store; stop that process first")
        }
        try await store.giveUpDeparture(move)
    }

    /// Returns the stops in force, which the new store takes over. A departing store records no further stops, so that
    /// a later stop is in the file only.
    private func stopsToCarry() async throws -> StopOrders {
        var stops = try await old.stops()
        for order in stopsByFile().orders {
            switch order.scope {
            case .run, .occurrence:
                throw StoreError.inUse(
                    path: paths.old,
                    reason:
                        "\(order.summary), but only by its STOP file; remove that line from the file, and pause "
                        + "\(order.scope.summary) first"
                )
            case .all, .campaign: break
            }
            stops.put(order)
        }
        return stops
    }

    /// Records the stops that came between the read of the file and the end of the move.
    private func carryLateStops(behind carried: StopOrders, by actor: Actor) async throws {
        for order in stopsByFile().orders where carried[order.scope] == nil {
            _ = try await new.recordStop(order, by: actor, now: now())
        }
    }

    /// Records the move in both stores, or continues the recorded move, and returns it.
    private func begin(by actor: Actor) async throws -> StoreMove {
        let arrival = try await new.arrival()
        if var known = try await old.departure() {
            guard known.to == paths.new else { throw known.refusal(at: paths.old) }
            if let arrival, arrival.move.id == known.id { return try await resume(&known, by: actor) }
            // The old store is closed permanently, or the content at the new address came from another store.
            guard known.endedAt == nil, arrival == nil else { throw other(known) }
            try await requireEmpty()
            _ = try await resume(&known, by: actor)
            try await new.beginArrival(known, namespace: old.namespace)
            return known
        }
        guard arrival == nil else { throw Self.taken(paths.new) }
        try await requireEmpty()
        if let daemon = try await old.daemon() {
            throw StoreError.inUse(path: paths.old, reason: "\(daemon.owner) is the daemon; stop the daemon first")
        }
        _ = try await stopsToCarry()
        if let sender = try await old.senders().first(where: { $0.state != .gone }) {
            throw StoreError.inUse(path: paths.old, reason: "\(sender.name) may be sending; stop that sender first")
        }
        let move = StoreMove(id: UUID().uuidString, from: paths.old, to: paths.new, begunAt: now(), mover: mover)
        try await old.beginDeparture(move, by: actor)
        try await new.beginArrival(move, namespace: old.namespace)
        return move
    }

    /// Records this process as the mover, and returns the move. A move that has ended stays unchanged.
    private func resume(_ move: inout StoreMove, by actor: Actor) async throws -> StoreMove {
        guard move.endedAt == nil else { return move }
        move.mover = mover
        try await old.beginDeparture(move, by: actor)
        return move
    }

    private func requireEmpty() async throws {
        guard try await new.isEmpty() else { throw Self.taken(paths.new) }
    }

    private static func taken(_ path: String) -> Failure {
        Failure(.refused, "\(path) already has a store; nothing was done: name a new address")
    }

    private func other(_ move: StoreMove) -> Failure {
        Failure(
            .refused,
            "the store at \(paths.new) is not the copy moved there from \(paths.old) since \(move.begunAt.iso8601); "
                + "put "
                + (move.endedAt == nil
                    ? "the moved copy back, or abandon the move with `fanfare move --give-up` and name a new address"
                    : "the moved copy back: do not use the old store any more"))
    }

    private func copy(_ move: StoreMove, _ report: @Sendable (Progress) -> Void) async throws {
        var done = try await new.arrival()?.progress ?? TransferProgress()
        while let table = done.current {
            try Task.checkCancellation()
            // Check now, to fail early instead of after hours. The end of the departure is the decisive check.
            try move.requireOnRecord(try await old.departure(), at: paths.old)
            report(Progress(phase: .copying, table: table.name, rows: done.rows))
            let batch = table.batch(try await old.rows(of: table, after: done.after, limit: table.batchRows))
            let next = done.adding(batch)
            try await new.write(batch, from: done, to: next)
            done = next
        }
    }

    /// Compares both stores. Returns the proofs that they are equal, table by table.
    private func prove(_ report: @Sendable (Progress) -> Void) async throws -> [TableProof] {
        let there = try await proofs(of: new, .provingNew, report)
        let here = try await proofs(of: old, .provingOld, report)
        let faults = zip(here, there).compactMap { here, there in
            here.difference(from: there).map { "\(here.table): \($0)" }
        }
        guard faults.isEmpty else {
            throw Failure(
                .invalidData,
                "the copy at \(paths.new) differs from \(paths.old): \(faults.joined(separator: "; ")). One of them "
                    + "was changed during the move: abandon it with `fanfare move --give-up`, and move to a new "
                    + "address")
        }
        return here
    }

    private func proofs(
        of store: any StoreTransfer, _ phase: Progress.Phase, _ report: @Sendable (Progress) -> Void
    ) async throws -> [TableProof] {
        var proofs: [TableProof] = []
        var rows = 0
        for table in TransferTable.all {
            let proof = try await store.proof(of: table) { count in
                rows += count
                report(Progress(phase: phase, table: table.name, rows: rows))
            }
            proofs.append(proof)
        }
        return proofs
    }
}

/// The stable shape of `move --json`.
package struct MoveResult: Codable, Hashable, Sendable {
    package struct Table: Codable, Hashable, Sendable {
        package var name: String
        package var rows: Int
        /// The hash over all rows in order, in hex; equal in both stores.
        package var hash: String
    }

    package var from: String
    package var to: String
    package var begunAt: String
    package var endedAt: String
    package var rows: Int
    package var tables: [Table]

    init(_ arrival: StoreArrival) {
        from = arrival.move.from
        to = arrival.move.to
        begunAt = arrival.move.begunAt.iso8601
        endedAt = (arrival.move.endedAt ?? arrival.move.begunAt).iso8601
        rows = arrival.proofs.reduce(0) { $0 + $1.rows }
        tables = arrival.proofs.map { proof in
            let digits = String(proof.hash, radix: 16)
            return Table(
                name: proof.table, rows: proof.rows,
                hash: String(repeating: "0", count: 16 - digits.count) + digits)
        }
    }
}
