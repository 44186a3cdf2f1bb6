import GRDB
import Store

/// What is gathered while an audience is compiled: the values under names of ours (`:p0`, `:p1`, and so on), and which
/// segments it is inside of.
struct AudienceParameters {
    private(set) var values: [String: DatabaseValue] = [:]
    private var parts = 0
    private var openSegments: [String] = []
    private var segments: [String: SegmentEntry] = [:]

    /// Returns the placeholder to write into the text.
    mutating func add(_ value: some DatabaseValueConvertible) -> String {
        let name = "p\(values.count)"
        values[name] = value.databaseValue
        return ":\(name)"
    }

    /// A few segments that name each other twice would be written out to an endless text.
    mutating func countPart() throws {
        parts += 1
        guard parts <= StoreLimits.audiencePartsMax, values.count <= StoreLimits.audienceParametersMax else {
            throw StoreError.audienceTooLarge
        }
    }

    /// Each segment is looked up once.
    mutating func entry(ofSegment name: String, in catalog: SegmentCatalog) throws -> SegmentEntry {
        if let known = segments[name] { return known }
        let entry = try catalog.entry(of: name)
        segments[name] = entry
        return entry
    }

    /// Throws when the segment is open already, or when too many are.
    mutating func enter(segment name: String) throws {
        if let start = openSegments.firstIndex(of: name) {
            throw StoreError.segmentCycle(Array(openSegments[start...]) + [name])
        }
        openSegments.append(name)
        guard openSegments.count <= StoreLimits.segmentDepthMax else { throw StoreError.segmentsTooDeep(openSegments) }
    }

    mutating func leaveSegment() {
        openSegments.removeLast()
    }
}
