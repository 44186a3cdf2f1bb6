package import Model

/// The origin of the devices of a segment.
package enum SegmentKind: Hashable, Sendable {
    /// The devices are imported.
    case `static`
    /// The devices are those that the expression selects at the time of a query. `source` is the expression as written.
    case dynamic(source: String)
}

package struct SegmentSummary: Hashable, Sendable {
    package var name: String
    package var kind: SegmentKind
    /// The number of devices.
    package var count: Int
    /// The time of the last import or definition.
    package var updatedAt: Timestamp

    package init(name: String, kind: SegmentKind, count: Int, updatedAt: Timestamp) {
        self.name = name
        self.kind = kind
        self.count = count
        self.updatedAt = updatedAt
    }
}

/// A segment with a sample of its devices.
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
    /// The members become exactly those given.
    case replace
    case add
    case remove
}

/// The key by which a segment file names a member. A user stands for all of their devices.
package enum SegmentMemberKey: Hashable, Sendable {
    case installation(String)
    case user(String)
    case token(DeviceToken)
}

/// The counts of a segment import. ``read`` and ``unmatched`` are numbers of keys; the others are numbers of devices.
package struct SegmentImportCounts: Hashable, Sendable {
    package var read = 0
    package var added = 0
    /// For ``SegmentImportMode/remove``: the members that stay.
    package var alreadyIn = 0
    package var removed = 0
    /// The keys for which no device is stored.
    package var unmatched = 0

    package init() {}
}

/// The contents of the segments of one audience. A signature approves these contents. The freeze compares them with
/// the contents at that time.
///
/// The contents of a dynamic segment are its expression. The contents of a static segment are the members of its last
/// import. A device that leaves the store leaves the segment as well. Two devices that turn out to be the same
/// installation become one. Neither change affects the contents here, because the audience gains no person.
package struct SegmentContents: Hashable, Sendable, Codable {
    /// The expressions of dynamic segments as written, by name.
    package var expressions: [String: String]
    /// The members of static segments, by name: see ``Row/members``.
    package var members: [String: String]

    private enum CodingKeys: String, CodingKey {
        case expressions = "expressions", members = "members"
    }

    package init(expressions: [String: String] = [:], members: [String: String] = [:]) {
        self.expressions = expressions
        self.members = members
    }

    /// A row of the table `segment`.
    package struct Row: Sendable {
        package var name: String
        package var source: String?
        /// `nil` for a static segment. A failure matters only to the campaigns that name the segment.
        package var expression: Result<AudienceExpression, UnreadableValue>?
        /// The number of members after the last import, and the SHA-256 of their ids in order, 8 bytes each,
        /// big-endian: `3 9f86d0…`. Empty until the first import under this schema version.
        package var members: String

        /// - Parameter expression: as stored.
        package init(name: String, source: String?, expression: String?, members: String) {
            self.name = name
            self.source = source
            self.expression = expression.map { json in
                Result { () throws(UnreadableValue) in try SegmentExpressionText.expression(json, of: name) }
            }
            self.members = members
        }
    }

    /// Gathers the segments that the campaign names, and those that they name in turn.
    ///
    /// - Parameter rows: all segments of the store.
    package init(of campaign: Campaign, among rows: [Row]) throws {
        self.init()
        let known = Dictionary(grouping: rows, by: \.name)
        var waiting = campaign.segmentsNamed
        if campaign.audienceSQL.map(Self.mayReadSegments) ?? false { waiting.formUnion(known.keys) }
        var seen: Set<String> = []
        while let name = waiting.popFirst() {
            guard seen.insert(name).inserted, let found = known[name], let row = found.first else { continue }
            // The database compares names by their bytes. Here it cannot be determined which of two names that look the
            // same is meant.
            guard found.count == 1, row.name.utf8.elementsEqual(name.utf8) else {
                throw StoreError.segmentIsAmbiguous(name)
            }
            if let expression = row.expression {
                expressions[name] = row.source ?? ""
                waiting.formUnion(try expression.get().segments)
            } else {
                members[name] = row.members
            }
        }
    }

    /// Returns whether a query may read the members of segments. It can name the view or, in PostgreSQL, an escaped
    /// form of the name.
    static func mayReadSegments(_ query: String) -> Bool {
        let text = query.lowercased()
        return text.holds("segment") || text.holds("u&")
    }

    /// Returns the names of segments whose contents differ.
    package func changes(to other: SegmentContents) -> [String] {
        let names = Set(expressions.keys).union(members.keys).union(other.expressions.keys).union(other.members.keys)
        return names.filter { expressions[$0] != other.expressions[$0] || members[$0] != other.members[$0] }.sorted()
    }
}

extension Campaign {
    /// The segments that the audience and the seeds of the stages name.
    package var segmentsNamed: Set<String> {
        (stages ?? []).reduce(into: audience.expression.segments) { $0.formUnion($1.seeds?.segments ?? []) }
    }

    /// Returns whether the campaign selects devices by a segment, or may do so by its query.
    package func uses(segment name: String) -> Bool {
        guard let query = audienceSQL, SegmentContents.mayReadSegments(query) else {
            return segmentsNamed.contains(name)
        }
        return query.contains(name) || query.lowercased().contains("u&") || segmentsNamed.contains(name)
    }
}

/// The users of a segment. A segment that has users is not removed.
package enum SegmentUsers {
    /// Throws ``StoreError/segmentIsUsed(_:by:)`` if there is any user.
    ///
    /// - Parameters:
    ///   - others: the users that the store does not know: campaigns and settings.
    ///   - rows: all segments of the store.
    ///   - runs: the runs that have not chosen their devices yet.
    package static func requireNone(
        of name: String, others: [String], rows: [SegmentContents.Row], runs: [Run]
    ) throws {
        let users = others + (try users(of: name, rows: rows, runs: runs))
        guard users.isEmpty else { throw StoreError.segmentIsUsed(name, by: users) }
    }

    /// Returns the users of a segment that the store knows: other segments, and runs that have not chosen their
    /// devices.
    package static func users(of name: String, rows: [SegmentContents.Row], runs: [Run]) throws -> [String] {
        let segments = try rows.filter { try $0.name != name && $0.expression?.get().segments.contains(name) == true }
            .map { "segment \"\($0.name)\"" }.sorted()
        let waiting = runs.filter { $0.definition.campaign.uses(segment: name) }
            .map { "run \($0.id) of \($0.campaign), which has not yet selected its devices" }
        return segments + waiting
    }
}
