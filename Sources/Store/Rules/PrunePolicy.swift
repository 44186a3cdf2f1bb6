package import Model

/// Which devices nobody needs any more.
package struct PrunePolicy: Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        case gone, notSeen, kept
    }

    /// For so long a background push is looked at as one that may still count: longer than any sensible window of a silent
    /// budget.
    private static let ledgerMs: Int64 = 86_400_000

    package let topic: String?
    package let goneBefore: Timestamp?
    package let notSeenSince: Timestamp?
    package let now: Timestamp

    package init(topic: String?, goneBefore: Timestamp?, notSeenSince: Timestamp?, now: Timestamp) {
        self.topic = topic
        self.goneBefore = goneBefore
        self.notSeenSince = notSeenSince
        self.now = now
    }

    /// A background push that ended after this still counts.
    package var countingSince: Timestamp { Self.countingSince(now) }

    package static func countingSince(_ now: Timestamp) -> Timestamp { now - .milliseconds(ledgerMs) }

    /// Of a device that is gone for long enough, or else was not seen for long enough.
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

    /// For the audit.
    package var words: String { "gone \(gone), not seen \(notSeen)" }
}

extension StoredDevice {
    /// What is left on record of a device that somebody removed.
    package static let removedReason = "Removed"

    /// For the audit: without its token.
    package var words: String {
        let name = record.installationID.map { "installation \($0)" } ?? record.token.redacted
        return "device \(id) of \(record.topic), \(name)"
    }
}
