import Model
import Store

/// What the store knows about the sources of a batch of events. It is read before the transaction that records the
/// batch, because a transaction delays the pushes of a run that is being sent.
struct FeedbackSources: Sendable {
    /// The devices by topic and installation.
    var installations: [String: [String: Int64]] = [:]
    /// The deliveries of each run that exists.
    var runs: [Int64: FeedbackRows.Pushes] = [:]

    /// Returns the device, or `nil` if the store has no such installation. A device of a push may be unknown, too.
    func device(of source: FeedbackEvent.Source) -> Int64? {
        switch source {
        case .push(_, let device), .device(let device): device
        case .installation(let id, let topic): installations[topic]?[id]
        }
    }
}

extension SQLSession {
    /// Finds the sources of events.
    ///
    /// - Parameter withPushes: whether the deliveries are needed. Otherwise every known run has none.
    func feedbackSources(_ events: [FeedbackEvent], withPushes: Bool = true) throws -> FeedbackSources {
        var installations: [String: Set<String>] = [:]
        var runs: [Int64: [Int64]] = [:]
        for event in events {
            switch event.source {
            case .push(let run, let device): runs[run, default: []].append(event.sentTo ?? device)
            case .installation(let id, let topic): installations[topic, default: []].insert(id)
            case .device: break
            }
        }
        var sources = FeedbackSources()
        for (topic, ids) in installations { sources.installations[topic] = try devices(ids, topic) }
        for run in try known(runs.keys.sorted()) {
            sources.runs[run] = withPushes ? try pushes(of: run, to: runs[run] ?? []) : .pruned
        }
        return sources
    }

    /// Returns the devices that the store does not have, or that a person removed.
    func unknownDevices(among devices: [Int64]) throws -> Set<Int64> {
        guard !devices.isEmpty else { return [] }
        let known = try all(
            """
            SELECT id FROM device WHERE id \(Self.dialect.isAny(1)) AND \(Self.dialect.isNotRemoved)
            """, devices.sorted()
        ) { try $0.int64(0) }
        return Set(devices).subtracting(known)
    }

    private func devices(_ installations: Set<String>, _ topic: String) throws -> [String: Int64] {
        let rows = try all(
            """
            SELECT device.installation_id, device.id FROM device
            WHERE device.topic_id = (SELECT id FROM topic WHERE name = $1)
                AND device.installation_id \(Self.dialect.isAny(2))
            """, topic, installations.filter(Self.dialect.canHold).sorted()
        ) { (try $0.text(0), try $0.int64(1)) }
        return Dictionary(rows) { first, _ in first }
    }

    private func known(_ runs: [Int64]) throws -> [Int64] {
        guard !runs.isEmpty else { return [] }
        return try all("SELECT id FROM run WHERE id \(Self.dialect.isAny(1))", runs) { try $0.int64(0) }
    }

    private func pushes(of run: Int64, to devices: [Int64]) throws -> FeedbackRows.Pushes {
        guard try hasDeliveries(of: run) else { return .pruned }
        let rows = try all(
            .once(
                """
                SELECT device_id, variant, locale_index, state, changed_at FROM \(Self.dialect.deliveries(of: run))
                WHERE \(Self.dialect.isOf(run: run)) AND device_id \(Self.dialect.isAny(1))
                """), values: [devices.sorted()]
        ) { row in
            let state = DeliveryState(code: try row.int64(3))
            return (
                try row.int64(0),
                FeedbackRows.Push(
                    variant: try row.intOrNil(1), locale: try row.intOrNil(2),
                    isAccepted: state == .accepted || state == .pending,
                    settledAt: state == .pending ? nil : try row.timestamp(4))
            )
        }
        return FeedbackRows.Pushes(byDevice: Dictionary(rows) { first, _ in first })
    }
}
