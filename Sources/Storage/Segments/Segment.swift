package import Model

package struct SegmentSummary: Hashable, Sendable {
    package var name: String
    package var count: Int
    package var updatedAt: Timestamp
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
