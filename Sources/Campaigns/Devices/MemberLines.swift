import CampaignFiles
package import Model
import Store

/// An import of members whose lines arrive in pieces. The change becomes visible as a whole with
/// ``commit(by:now:)``, and never before it. For use by one task at a time.
package struct MemberLines {
    private static let batchMax = 5_000
    /// The maximum number of rejected lines that are listed. All rejected lines are counted.
    private static let rejectsMax = 100

    private let segment: String
    private let mode: SegmentImportMode
    private let change: any SegmentImport
    private var arriving = ArrivingMembers()
    private var batch: [SegmentMemberKey] = []
    private var lines = ReadCounts()
    private var rejects: [SegmentChangeResult.Reject] = []

    init(_ change: any SegmentImport, _ mode: SegmentImportMode, of segment: String) {
        self.change = change
        self.mode = mode
        self.segment = segment
    }

    package mutating func append(_ piece: [UInt8]) async throws {
        arriving.append(piece)
        try await read()
    }

    private mutating func read() async throws {
        while let line = arriving.next() {
            switch line.member {
            case .success(let member):
                lines.good += 1
                batch.append(member.key)
                if batch.count == Self.batchMax { try await flush() }
            case .failure(let fault):
                lines.rejected += 1
                guard rejects.count < Self.rejectsMax else { continue }
                rejects.append(.init(line: line.number, reason: Redaction.withoutTokens(fault.reason)))
            }
        }
    }

    private mutating func flush() async throws {
        try await change.append(batch)
        batch.removeAll(keepingCapacity: true)
    }

    /// Applies and records the change. The caller does this after all lines have arrived.
    package mutating func commit(by actor: Actor, now: Timestamp) async throws -> SegmentChangeResult {
        arriving.finish()
        try await read()
        try await flush()
        let result = { @Sendable [segment, lines, rejects] (counts: SegmentImportCounts) in
            SegmentChangeResult(
                segment: segment, read: lines.read, rejected: lines.rejected, added: counts.added,
                alreadyIn: counts.alreadyIn, removed: counts.removed, unmatched: counts.unmatched, rejects: rejects)
        }
        return result(
            try await change.commit(now: now) { [segment, mode] counts in
                SegmentEvent(by: actor, "\(segment): \(mode.rawValue), \(result(counts).summary)")
            })
    }
}

/// The result of a change of members, as in `segments import --json`, with the rejected lines.
package struct SegmentChangeResult: Codable, Hashable, Sendable {
    package struct Reject: Codable, Hashable, Sendable {
        package var line: Int
        package var reason: String
    }

    package var segment: String
    package var read: Int
    package var rejected: Int
    package var added: Int
    package var alreadyIn: Int
    package var removed: Int
    package var unmatched: Int
    /// The first 100 rejected lines.
    package var rejects: [Reject]

    package var summary: String { Self.summary(of: numbers) ?? "" }

    /// The counts for the URL of a page. They are numbers, so that a forged URL cannot make the page show other
    /// text.
    package var numbers: [Int] { [read, added, removed, unmatched, rejected] }

    /// Returns the description of ``numbers``; `nil` for a list that is not valid.
    package static func summary(of numbers: [Int]) -> String? {
        guard numbers.count == 5, numbers.allSatisfy({ $0 >= 0 }) else { return nil }
        return "\(numbers[0].counted("line")), \(numbers[1].counted("device")) added, \(numbers[2]) removed, "
            + "\(numbers[3].counted("line")) without a device, \(numbers[4]) rejected"
    }
}
