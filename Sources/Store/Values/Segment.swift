package import Model

/// Where the devices of a segment come from.
package enum SegmentKind: Hashable, Sendable {
    /// Imported.
    case `static`
    /// Whoever the expression selects when it is asked; as written.
    case dynamic(source: String)
}

package struct SegmentSummary: Hashable, Sendable {
    package var name: String
    package var kind: SegmentKind
    /// Devices.
    package var count: Int
    /// The last import or definition.
    package var updatedAt: Timestamp

    package init(name: String, kind: SegmentKind, count: Int, updatedAt: Timestamp) {
        self.name = name
        self.kind = kind
        self.count = count
        self.updatedAt = updatedAt
    }
}

/// A segment to look at.
package struct SegmentDetail: Hashable, Sendable {
    package var summary: SegmentSummary
    /// The first devices in order of id.
    package var sample: [StoredDevice]

    package init(summary: SegmentSummary, sample: [StoredDevice]) {
        self.summary = summary
        self.sample = sample
    }

    package var kind: SegmentKind { summary.kind }
}

package enum SegmentImportMode: String, Hashable, Sendable, CaseIterable {
    /// Afterwards the members are exactly those given.
    case replace
    case add
    case remove
}

/// How a segment file names a member; a user is every device of theirs.
package enum SegmentMemberKey: Hashable, Sendable {
    case installation(String)
    case user(String)
    case token(DeviceToken)
}

/// `read` and `unmatched` count keys, the others devices.
package struct SegmentImportCounts: Hashable, Sendable {
    package var read = 0
    package var added = 0
    /// For ``SegmentImportMode/remove``: those that stay.
    package var alreadyIn = 0
    package var removed = 0
    /// Keys no device is stored for.
    package var unmatched = 0

    package init() {}
}
