import CampaignFiles
package import Model
package import Store

/// Imports, defines, lists and shows segments, which are named sets of devices.
package struct ManageSegments: Sendable {
    private static let batchMax = 10_000
    private static let nameBytesMax = 100
    package static let membersMax = 1000
    /// The modes of an import of members.
    package static let modes = SegmentImportMode.allCases.map(\.rawValue)

    private let store: any DeviceRegistry & AuditLog

    package init(store: any DeviceRegistry & AuditLog) {
        self.store = store
    }

    /// Returns all segments. With `now`, dynamic segments are counted at that moment over all devices, which takes
    /// seconds for millions of devices. With `nil`, they have the count from their definition, which is cheap.
    package func list(now: Timestamp?) async throws -> [SegmentResult] {
        try await store.segments(now: now).map(SegmentResult.init)
    }

    /// Returns one segment, with up to `sampleMax` of its devices.
    package func show(_ name: String, sampleMax: Int, now: Timestamp) async throws -> SegmentDetail {
        try await store.segment(name, now: now, sampleMax: sampleMax)
    }

    /// Returns one segment, counted now.
    package func summary(_ name: String, now: Timestamp) async throws -> SegmentResult {
        SegmentResult(try await store.segment(name, now: now, sampleMax: 0).summary)
    }

    /// Returns the message for a segment that does not exist; `nil` for any other error.
    package static func missing(_ error: any Error) -> String? {
        guard case StoreError.noSuchSegment? = error as? StoreError else { return nil }
        return "\(error)"
    }

    /// Returns the same error without the name of another segment, for a caller who may not know all segments.
    package static func withoutSuggestion(_ error: any Error) -> any Error {
        guard case StoreError.noSuchSegment(let name, _)? = error as? StoreError else { return error }
        return StoreError.noSuchSegment(name, suggestion: nil)
    }

    /// Returns a page of a segment's devices, in order of id. A page may have fewer than `limit` devices, or none,
    /// although other pages follow.
    ///
    /// - Parameter cursor: the cursor that the previous page gave; `nil` for the first page.
    package func members(of name: String, cursor: String?, limit: Int, now: Timestamp) async throws
        -> SegmentMembersResult
    {
        let page = try await store.members(
            ofSegment: name, after: try PageCursor.position(cursor) ?? 0,
            limit: PageCursor.limit(limit, max: Self.membersMax), now: now)
        return SegmentMembersResult(
            segment: name, devices: page.devices.map(DeviceResult.init), next: page.next.map(PageCursor.text))
    }

    /// Defines a segment by an audience expression.
    ///
    /// - Parameter condition: the state of the segment that the caller has seen; `nil` to replace the segment in any
    ///   state. Throws ``SegmentRefusal`` if the segment has another state.
    package func define(
        _ name: String, expression: String, _ condition: Condition? = nil, by actor: Actor, now: Timestamp
    ) async throws -> SegmentSummary {
        try await check(name)
        let parsed = try ExpressionText.parse(expression, named: "expression")
        if let condition {
            let known = try await store.segments(now: nil).first { PlainName.isSame($0.name, name) }
            try condition.require(name, known.map(SegmentResult.init))
        }
        try await store.defineSegment(
            name, source: expression, expression: parsed, now: now,
            event: SegmentEvent(by: actor, "\(name): \(RecordedReason.cut(expression))"))
        return try await store.segment(name, now: now, sampleMax: 0).summary
    }

    /// Removes a segment. Throws if anything uses it. The devices of the segment stay.
    ///
    /// - Parameter others: the users of the segment in the files, see ``ManageFiles/users(ofSegment:)``.
    package func remove(_ name: String, usedBy others: [String], by actor: Actor, now: Timestamp) async throws {
        try await store.removeSegment(name, usedBy: others, now: now, by: actor)
    }

    /// Returns an import that changes the members by lines that arrive in pieces.
    ///
    /// - Parameter topic: the topic of the devices that the lines may name; `nil` for any topic.
    package func change(_ name: String, mode: String, topic: String?) async throws -> MemberLines {
        try await check(name)
        guard let mode = SegmentImportMode(rawValue: mode) else {
            throw Failure(.invalidData, "members can be changed by \(Self.modes.joined(separator: ", "))")
        }
        return MemberLines(try await store.importSegment(name, mode: mode, topic: topic), mode, of: name)
    }

    /// Throws for an empty, too long or multi-line name, and for a new name with invisible or confusable characters.
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
            "the segment's name \"\(name)\" has invisible or confusable characters, and would be another "
                + "segment, not \"\(plain)\"; write \"\(plain)\"")
    }

    /// Changes the members of a segment by a file. The change takes effect as a whole or not at all.
    ///
    /// - Parameters:
    ///   - path: CSV with one column of ids, or one installation id per line; `-` for standard input.
    ///   - topic: the topic of the devices that the lines may name; `nil` for any topic.
    package func importMembers(
        of name: String, path: String, mode: SegmentImportMode, topic: String?, rejects: String?, by actor: Actor,
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
        let result = { @Sendable (counts: SegmentImportCounts) in
            SegmentImportResult(
                segment: name, read: lines.read, rejected: lines.rejected, added: counts.added,
                alreadyIn: counts.alreadyIn, removed: counts.removed, unmatched: counts.unmatched)
        }
        return result(
            try await change.commit(now: now()) { counts in
                SegmentEvent(by: actor, "\(name): \(path): \(result(counts).summary)")
            })
    }
}

/// The stable shape of a segment in `segments list|show|define --json`.
package struct SegmentResult: Codable, Hashable, Sendable {
    package var name: String
    /// `static` for imported members, `dynamic` for the devices that an expression selects.
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
    /// Absent on the last page.
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

    package var summary: String {
        "\(read.counted("line")), \(added.counted("device")) added, \(alreadyIn.counted("was", "were")) already members, "
            + "\(removed.grouped) removed, \(unmatched.counted("line")) without a device, \(rejected.grouped) rejected"
    }
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
