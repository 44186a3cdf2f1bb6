import CampaignFiles
package import Model
package import Store

/// Named sets of devices: imported, defined by an expression, listed and shown.
package struct ManageSegments: Sendable {
    private static let batchMax = 10_000

    private let store: any DeviceRegistry

    package init(store: any DeviceRegistry) {
        self.store = store
    }

    /// All, dynamic ones counted now.
    package func list(now: Timestamp) async throws -> [SegmentResult] {
        try await store.segments(now: now).map(SegmentResult.init)
    }

    /// One, with up to `sampleMax` of its devices.
    package func show(_ name: String, sampleMax: Int, now: Timestamp) async throws -> SegmentDetail {
        try await store.segment(name, now: now, sampleMax: sampleMax)
    }

    /// Names an audience expression.
    package func define(_ name: String, expression: String, now: Timestamp) async throws -> SegmentSummary {
        let parsed = try ExpressionText.parse(expression, named: "expression")
        try await store.defineSegment(name, source: expression, expression: parsed, now: now)
        return try await store.segment(name, now: now, sampleMax: 0).summary
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
    fileprivate var key: SegmentMemberKey {
        switch self {
        case .installationID(let id): .installation(id)
        case .userID(let id): .user(id)
        case .token(let token): .token(token)
        }
    }
}
