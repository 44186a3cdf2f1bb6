import CampaignFiles
package import Model
package import Store

/// Named sets of devices: imported, defined by an expression, listed and shown.
package struct ManageSegments: Sendable {
    private static let batchMax = 10_000
    private static let nameBytesMax = 100
    package static let membersMax = 1000
    /// What lines of members may do.
    package static let modes = SegmentImportMode.allCases.map(\.rawValue)

    private let store: any DeviceRegistry & RunLog

    package init(store: any DeviceRegistry & RunLog) {
        self.store = store
    }

    /// All. With `now` dynamic ones are counted then, over all devices, which takes seconds for millions; with nil they have
    /// the count of when they were defined, and this is cheap.
    package func list(now: Timestamp?) async throws -> [SegmentResult] {
        try await store.segments(now: now).map(SegmentResult.init)
    }

    /// One, with up to `sampleMax` of its devices.
    package func show(_ name: String, sampleMax: Int, now: Timestamp) async throws -> SegmentDetail {
        try await store.segment(name, now: now, sampleMax: sampleMax)
    }

    /// One, counted now.
    package func summary(_ name: String, now: Timestamp) async throws -> SegmentResult {
        SegmentResult(try await store.segment(name, now: now, sampleMax: 0).summary)
    }

    /// What is said where the segment that somebody names is not there; nil: it is another error.
    package static func missing(_ error: any Error) -> String? {
        guard case StoreError.noSuchSegment? = error as? StoreError else { return nil }
        return "\(error)"
    }

    /// The same error without the name of another segment, for who may not know of all.
    package static func withoutSuggestion(_ error: any Error) -> any Error {
        guard case StoreError.noSuchSegment(let name, _)? = error as? StoreError else { return error }
        return StoreError.noSuchSegment(name, suggestion: nil)
    }

    /// A page of its devices, in order of id; it may have fewer than `limit`, or none, and still be followed by others.
    ///
    /// - Parameter cursor: of the page before; nil for the first.
    package func members(of name: String, cursor: String?, limit: Int, now: Timestamp) async throws
        -> SegmentMembersResult
    {
        let page = try await store.members(
            ofSegment: name, after: try PageCursor.position(cursor) ?? 0,
            limit: PageCursor.limit(limit, max: Self.membersMax), now: now)
        return SegmentMembersResult(
            segment: name, devices: page.devices.map(DeviceResult.init), next: page.next.map(PageCursor.text))
    }

    /// Names an audience expression.
    ///
    /// - Parameter condition: what the caller has seen of the segment; `nil`: it is replaced whatever it is. Throws
    ///   ``SegmentRefusal`` where it is something else.
    package func define(
        _ name: String, expression: String, _ condition: Condition? = nil, by actor: Actor, now: Timestamp
    ) async throws -> SegmentSummary {
        try await check(name)
        let parsed = try ExpressionText.parse(expression, named: "expression")
        if let condition {
            let known = try await store.segments(now: nil).first { PlainName.isSame($0.name, name) }
            try condition.require(name, known.map(SegmentResult.init))
        }
        try await store.defineSegment(name, source: expression, expression: parsed, now: now)
        try await store.recordEvent(
            kind: .segmentDefined, run: nil, actor: actor, detail: "\(name): \(RecordedReason.cut(expression))",
            now: now)
        return try await store.segment(name, now: now, sampleMax: 0).summary
    }

    /// Removes a segment that nothing needs; its devices stay.
    ///
    /// - Parameter others: what needs it in the files, see ``ManageFiles/users(ofSegment:)``.
    package func remove(_ name: String, usedBy others: [String], by actor: Actor, now: Timestamp) async throws {
        try await store.removeSegment(name, usedBy: others, now: now, by: actor)
    }

    /// Sets members from lines that arrive in pieces.
    ///
    /// - Parameter topic: only devices of this topic.
    package func change(_ name: String, mode: String, topic: String?) async throws -> MemberLines {
        try await check(name)
        guard let mode = SegmentImportMode(rawValue: mode) else {
            throw Failure(.invalidData, "members can be changed by \(Self.modes.joined(separator: ", "))")
        }
        return MemberLines(try await store.importSegment(name, mode: mode, topic: topic), of: name)
    }

    /// Puts a change of members on record.
    package func recordChange(of name: String, _ words: String, by actor: Actor, now: Timestamp) async throws {
        try await store.recordEvent(
            kind: .segmentChanged, run: nil, actor: actor, detail: "\(name): \(words)", now: now)
    }

    /// Throws for a new name that is not in its plain spelling. A segment that has such a name already keeps it.
    private func check(_ name: String) async throws {
        let isLine = name.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
        guard name.hasVisibleSign, name.utf8.count <= Self.nameBytesMax, isLine else {
            throw Failure(
                .invalidData,
                "a segment's name is one line of 1 to \(Self.nameBytesMax) bytes; give it another name")
        }
        guard let plain = PlainName.advice(for: name) else { return }
        guard try await !store.segments(now: nil).contains(where: { PlainName.isSame($0.name, name) }) else { return }
        throw Failure(
            .invalidData,
            "the segment's name \"\(name)\" has spaces or signs that cannot be told apart or seen, and would be another "
                + "segment than \"\(plain)\"; write \"\(plain)\"")
    }

    /// Sets members from a file, as a whole or not at all.
    ///
    /// - Parameters:
    ///   - path: CSV with one column of ids, or one installation id a line; `-` for standard input.
    ///   - topic: only devices of this topic.
    package func importMembers(
        of name: String, path: String, mode: SegmentImportMode, topic: String?, rejects: String?,
        now: @Sendable () -> Timestamp
    ) async throws -> SegmentImportResult {
        try await check(name)
        let change = try await store.importSegment(name, mode: mode, topic: topic)
        let lines = try await SegmentFileReader(
            path: path, rejectsPath: RejectsPath.path(for: path, named: rejects)
        ).forEachBatch(size: Self.batchMax) { members in
            try await change.append(members.map(\.key))
            try Task.checkCancellation()
        }
        let counts = try await change.commit(now: now())
        return SegmentImportResult(
            segment: name, read: lines.read, rejected: lines.rejected, added: counts.added,
            alreadyIn: counts.alreadyIn, removed: counts.removed, unmatched: counts.unmatched)
    }
}

/// The stable shape of a segment in `segments list|show|define --json`.
package struct SegmentResult: Codable, Hashable, Sendable {
    package var name: String
    /// `static`: imported; `dynamic`: whoever the expression selects.
    package var kind: String
    package var expression: String?
    package var count: Int
    package var updatedAt: String

    package init(_ summary: SegmentSummary) {
        name = summary.name
        switch summary.kind {
        case .static: kind = "static"
        case .dynamic(let source):
            kind = "dynamic"
            expression = source
        }
        count = summary.count
        updatedAt = summary.updatedAt.iso8601
    }
}

/// The stable shape of `segments show --json`.
package struct SegmentDetailResult: Codable, Hashable, Sendable {
    package var segment: SegmentResult
    package var sample: [DeviceResult]

    package init(_ detail: SegmentDetail) {
        segment = SegmentResult(detail.summary)
        sample = detail.sample.map(DeviceResult.init)
    }
}

/// The stable shape of a page of a segment's devices.
package struct SegmentMembersResult: Codable, Hashable, Sendable {
    package var segment: String
    package var devices: [DeviceResult]
    /// Absent: this was the last page.
    package var next: String?

    package init(segment: String, devices: [DeviceResult], next: String?) {
        self.segment = segment
        self.devices = devices
        self.next = next
    }
}

/// The stable shape of `segments import --json`.
package struct SegmentImportResult: Codable, Hashable, Sendable {
    package var segment: String
    package var read: Int
    package var rejected: Int
    package var added: Int
    package var alreadyIn: Int
    package var removed: Int
    package var unmatched: Int
}

/// An audience expression as a person wrote it.
package enum ExpressionText {
    package static func parse(_ text: String, named name: String) throws -> AudienceExpression {
        let (expression, problems) = AudienceParser.parse(text)
        guard let expression, problems.isEmpty else {
            throw Failure(
                .invalidData,
                problems.map {
                    Diagnostic(path: name, line: 1, column: $0.offset + 1, what: $0.what, advice: $0.advice)
                })
        }
        return expression
    }
}

extension SegmentMember {
    var key: SegmentMemberKey {
        switch self {
        case .installationID(let id): .installation(id)
        case .userID(let id): .user(id)
        case .token(let token): .token(token)
        }
    }
}
