package import Model

/// The rule for devices that are no longer needed.
package struct PrunePolicy: Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        case gone, notSeen, kept
    }

    package let topic: String?
    package let goneBefore: Timestamp?
    package let notSeenSince: Timestamp?
    /// Whether only devices that a person removed match ``goneBefore``.
    package let isForRemoved: Bool
    package let now: Timestamp

    package init(
        topic: String?, goneBefore: Timestamp?, notSeenSince: Timestamp?, isForRemoved: Bool = false, now: Timestamp
    ) {
        self.topic = topic
        self.goneBefore = goneBefore
        self.notSeenSince = notSeenSince
        self.isForRemoved = isForRemoved
        self.now = now
    }

    /// The rule for the rows of removed devices, see ``DeviceRegistry/removeDevice(_:now:by:)``.
    package static func removed(now: Timestamp) -> PrunePolicy {
        PrunePolicy(topic: nil, goneBefore: now, notSeenSince: nil, isForRemoved: true, now: now)
    }

    /// A background push that ended after this moment still counts, whatever window the silent budget has.
    package var countingSince: Timestamp { Self.countingSince(now) }

    package static func countingSince(_ now: Timestamp) -> Timestamp { now - Configuration.SilentBudget.windowMax }

    /// Returns why a matching device is pruned, or `.kept` if one of its pushes still counts.
    package static func reason(isGone: Bool, hasCountingPush: Bool) -> Reason {
        if hasCountingPush { return .kept }
        return isGone ? .gone : .notSeen
    }
}

extension PruneCounts {
    package mutating func add(_ reason: PrunePolicy.Reason) {
        switch reason {
        case .gone: gone += 1
        case .notSeen: notSeen += 1
        case .kept: kept += 1
        }
    }

    /// The summary for the audit log.
    package var summary: String { "gone \(gone), not seen \(notSeen)" }
}

extension StoredDevice {
    /// The status reason of a device that a person removed.
    package static let removedReason = "Removed"

    /// The columns of the table `device` that the row of a removed device loses. It keeps what recognizes the device
    /// when it registers again, and `registered_at`, without which an old registration would look new.
    package static let removedColumns = DeviceRecord.Erasure.whole.flatMap(\.columns) + ["attributes", "last_seen_at"]

    /// The name for the audit log, without the token.
    package var summary: String {
        let name = record.installationID.map { "installation \($0)" } ?? record.token.redacted
        return "device \(id) of \(record.topic), \(name)"
    }
}
