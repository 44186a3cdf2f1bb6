import Foundation
import TestSupport

/// What a person, a timer or one more daemon does beside several senders, and what must hold after it.
extension Fleet {
    struct Cancellation {
        /// Of the run.
        var occurrence: Int
        /// When the command had ended, in milliseconds.
        var returnedAt: Int
    }

    /// A sender that asked just before the cancellation sends for a trust window more. The rest is for slow machines.
    private static let silentAfterMs = 5_000
    /// In a mixture a command may meet a connection that is cut.
    private static let attemptsMax = 5
    private static let passing: [ChildProcess.End] = [.exited(69), .exited(75)]

    /// The server is away for longer than others wait for a sender, and the order is the first thing that it hears.
    func comeBack(with order: Order) throws {
        try gather()
        if order == .cancel { try awaitFreeze() }
        let senders = try count("sender WHERE lost_at IS NULL")
        try cluster.stop()
        wait(.seconds(14))
        try cluster.start()
        try give(order)
        // Until the last of them must have come back, and would hear that it was taken over.
        wait(.seconds(7))
        try examine()
        let lost = try count("sender WHERE lost_at IS NOT NULL")
        if lost > 0 { refused("\(order)", "\(lost) of \(senders) senders, all alive, were taken over") }
    }

    func give(_ order: Order) throws {
        if order == .serve { return try startAnother() }
        // In a mixture; the server is there.
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
            // A run may have ended before the order was heard.
            if try end == .exited(0) || isMixed && state(current) == "finished" { return }
            guard isMixed, Self.passing.contains(end), attempt < Self.attemptsMax else {
                refused("\(command)", "\(end): \(child.errors.suffix(500))")
                return
            }
        }
    }

    /// A run that is cancelled before its audience is written down has fewer deliveries than devices.
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

    /// In good order. One that heard nothing for too long, as in a mixture, has ended with "try again".
    func endAnother() throws {
        guard let daemon = another else { return }
        another = nil
        daemon.signal(SIGTERM)
        let end = daemon.wait()
        if end != .exited(0), !(isMixed && end == .exited(75)) {
            refused("another daemon", "ended with \(end): \(daemon.errors.suffix(500))")
        }
    }

    /// The numbers of the runs that were cancelled.
    func cancelled(in store: StoreRecord) -> Set<Int64> {
        Set(cancellations.compactMap { store.runs["\($0.occurrence)"] })
    }

    /// Nothing of a run is sent once a command has said that the run is cancelled and its senders had time to hear it.
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
