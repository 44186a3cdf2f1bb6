import Foundation
import TestSupport

/// Commands of a person or a timer, and additional daemons, next to several senders. Checks what must hold afterwards.
extension Fleet {
    struct Cancellation {
        /// The occurrence of the run.
        var occurrence: Int
        /// The time at which the command returned, in milliseconds.
        var returnedAt: Int
    }

    /// The time after a cancellation without requests, in milliseconds. A sender that checked just before the
    /// cancellation may send for one trust window. The rest is for slow machines.
    private static let silentAfterMs = 15_000
    /// The maximum number of attempts in a mixture, where a command may meet a cut connection.
    private static let attemptsMax = 5
    private static let passing: [ChildProcess.End] = [.exited(69), .exited(75)]

    /// Stops the server for longer than the takeover timeout. The order is the first command after its return.
    func comeBack(with order: Order) throws {
        try gather()
        if order == .cancel { try awaitFreeze() }
        let senders = try count("sender WHERE lost_at IS NULL")
        try cluster.stop()
        wait(.seconds(14))
        try cluster.start()
        try give(order)
        // Waits until the last sender must have reconnected, and would learn of a takeover.
        wait(.seconds(7))
        try examine()
        let lost = try processes(ofLost: "NOT \(Self.isDue)").count
        if lost > 0 { refused("\(order)", "\(lost) of \(senders) senders, all alive, were taken over too early") }
    }

    /// Whether a lost sender had no heartbeat for the takeover timeout before. After the server was away, that time
    /// begins with the quiet time.
    static let isDue = """
        (lost_at - greatest(heartbeat_at, (
            SELECT coalesce(max(until), 0) - \(takeoverMs) FROM sender_quiet WHERE until - \(takeoverMs) < lost_at
        )) >= \(takeoverMs))
        """

    /// Returns the processes of the lost senders for which the condition holds.
    func processes(ofLost condition: String) throws -> Set<pid_t> {
        guard case .server(_, let database) = installation.store else { return [] }
        let names = try cluster.sql(
            "SELECT name FROM sender WHERE lost_at IS NOT NULL AND \(condition)", database: database)
        return Set(names.split(separator: "\n").compactMap { Machines.process(ofSender: String($0)) })
    }

    func give(_ order: Order) throws {
        if order == .serve { return try startAnother() }
        // Only in a mixture: elsewhere the server may be unavailable here.
        if order == .cancel, isMixed { try awaitFreeze() }
        for command in order.commands("campaign/\(current)") { try say(command) }
        guard order == .cancel, try state(current) == "cancelled" else { return }
        counts.cancelled += 1
        cancellations.append(Cancellation(occurrence: current, returnedAt: Self.milliseconds()))
    }

    private func say(_ command: [String]) throws {
        for attempt in 1...Self.attemptsMax {
            let child = try installation.start(command, name: "order", machine: Self.person)
            let end = child.wait(killingAfter: Process.longest)
            // The run may have finished before the command arrived.
            if try end == .exited(0) || isMixed && state(current) == "finished" { return }
            guard isMixed, Self.passing.contains(end), attempt < Self.attemptsMax else {
                refused("\(command)", "\(end): \(child.errors.suffix(500))")
                return
            }
        }
    }

    /// Waits until the audience is frozen. A run that is cancelled before has fewer deliveries than devices.
    private func awaitFreeze() throws {
        let deadline = ContinuousClock.now + Process.longest
        while try count("run WHERE occurrence = '\(current)' AND is_frozen") == 0, ContinuousClock.now < deadline {
            wait(.milliseconds(50))
        }
    }

    private func startAnother() throws {
        try endAnother()
        for attempt in 1...Self.attemptsMax {
            let daemon = try installation.start(["serve"], name: "another", machine: "another")
            another = daemon
            let deadline = ContinuousClock.now + Process.longest
            while !daemon.errors.contains("files read"), !daemon.hasEnded, ContinuousClock.now < deadline {
                wait(.milliseconds(20))
            }
            guard daemon.hasEnded else {
                if !daemon.errors.contains("files read") { refused("another daemon", "does not start") }
                return
            }
            another = nil
            let end = daemon.wait()
            guard isMixed, Self.passing.contains(end), attempt < Self.attemptsMax else {
                refused("another daemon", "\(end): \(daemon.errors.suffix(500))")
                return
            }
        }
    }

    /// Stops the additional daemon in order. In a mixture, it may have exited with 75 after losing its connection for
    /// too long.
    func endAnother() throws {
        guard let daemon = another else { return }
        another = nil
        daemon.signal(SIGTERM)
        let end = daemon.wait()
        if end != .exited(0), !(isMixed && end == .exited(75)) {
            refused("another daemon", "ended with \(end): \(daemon.errors.suffix(500))")
        }
    }

    /// Returns the numbers of the cancelled runs.
    func cancelled(in store: StoreRecord) -> Set<Int64> {
        Set(cancellations.compactMap { store.runs["\($0.occurrence)"] })
    }

    /// Returns a violation for each run that sends after its cancellation returned and its senders had time to learn of
    /// it.
    func lateRequests(_ store: StoreRecord, _ wire: WireLog) -> [String] {
        cancellations.compactMap { cancellation in
            guard let run = store.runs["\(cancellation.occurrence)"] else {
                return "the cancelled run \(cancellation.occurrence) is gone"
            }
            let pushes = Set(store.deliveries.filter { $0.run == run }.map(\.id))
            let silentFrom = cancellation.returnedAt + Self.silentAfterMs
            let late = wire.entries.count { $0.time > silentFrom && pushes.contains($0.id) }
            return late == 0 ? nil : "run \(run): \(late) requests after it was cancelled"
        }
    }
}
