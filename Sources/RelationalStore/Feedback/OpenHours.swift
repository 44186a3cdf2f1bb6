import Model
import Store

/// The times at which devices opened the app. The caller asks in ascending order of device.
///
/// Opens are read in pages, in order of device, each from the device that is asked for. So a store with few opens is
/// read once, and memory use is constant.
final class OpenHours<Session: SQLSession> {
    /// The number of opens per page. A device with more has only as many.
    private static var pageOpens: Int { 20_000 }
    /// The app's curve is read from this number of places, evenly spread over the devices, and from this number of
    /// opens at each place. So the time does not grow with the number of opens.
    private static var curvePlaces: Int64 { 64 }
    private static var curveOpensPerPlace: Int { 8_000 }

    private let db: Session
    private let span: Range<Timestamp>
    private var page: [Int64: [Int64]] = [:]
    /// All devices up to this one that the page lacks have no opens.
    private var readThrough: Int64 = .min

    init(_ db: Session, _ span: Range<Timestamp>) {
        self.db = db
        self.span = span
    }

    /// Returns the opens of a device, as quarters of an hour since 1970, without repetitions.
    func opens(of device: Int64) throws -> [Int64] {
        if device > readThrough { try readPage(from: device) }
        return page[device] ?? []
    }

    private func readPage(from device: Int64) throws {
        page.removeAll(keepingCapacity: true)
        var (last, rows) = (device, 0)
        let text = Self.text(where: "device_id >= $1", limit: Self.pageOpens)
        try db.each(SQLStatement(stringLiteral: text), values: [device, span.lowerBound, span.upperBound]) { row in
            last = try row.int64(0)
            rows += 1
            page[last, default: []].append(try row.int64(1))
        }
        readThrough = .max
        if rows == Self.pageOpens {
            // The rest of the last device may be on the next page.
            if page.count > 1 { page[last] = nil }
            readThrough = page.isEmpty || page[last] != nil ? last : last - 1
        }
        for (device, quarters) in page { page[device] = Array(Set(quarters)) }
    }

    /// Returns the opens of an app's devices by local hour.
    func curve(topic: String, _ clocks: inout ZoneClocks) throws -> HourCounts {
        var counts = HourCounts()
        let ends = try db.first(
            """
            SELECT (SELECT min(device_id) FROM feedback_event), (SELECT max(device_id) FROM feedback_event)
            """
        ) { (try $0.int64OrNil(0), try $0.int64OrNil(1)) }
        guard let ends, let first = ends.0, let last = ends.1 else {
            // No device has opens, so none is looked up.
            readThrough = .max
            return counts
        }
        let step = max(1, (last - first) / Self.curvePlaces + 1)
        let text = """
            SELECT DISTINCT device.id, device.time_zone, sample.quarter FROM (
                \(Self.text(where: "device_id >= $1 AND device_id < $4", limit: Self.curveOpensPerPlace))
            ) AS sample JOIN device ON device.id = sample.device_id
            WHERE device.topic_id = (SELECT id FROM topic WHERE name = $5)
            """
        for start in stride(from: first, through: last, by: Int64.Stride(step)) {
            var byZone: [String?: [Int64]] = [:]
            try db.each(
                SQLStatement(stringLiteral: text),
                values: [start, span.lowerBound, span.upperBound, start + step, topic]
            ) { row in byZone[try row.textOrNil(1), default: []].append(try row.int64(2)) }
            for (zone, quarters) in byZone { clocks.add(quarters, inZone: zone, to: &counts) }
        }
        return counts
    }

    /// Returns a query for opens in order of device. `$2` and `$3` are the time in which they must have happened. An
    /// open that was received later does not count, so that the same opens count when a freeze is repeated.
    private static func text(where condition: String, limit: Int) -> String {
        """
        SELECT device_id, \(SQLDialect.openQuarter) AS quarter FROM feedback_event
        WHERE \(condition) AND \(SQLDialect.isOpen) ORDER BY device_id LIMIT \(limit)
        """
    }
}

extension SQLDialect {
    fileprivate static var openQuarter: String { "happened_at / \(BestHour.quarterMs)" }

    /// The condition that an event is an open between `$2` and `$3`. The plus keeps the engine from the index by time,
    /// which would need a sort.
    fileprivate static var isOpen: String {
        let kinds = FeedbackKind.opens.map { "\($0.rawValue)" }.joined(separator: ", ")
        return "kind IN (\(kinds)) AND happened_at >= $2 AND happened_at < $3 AND +received_at < $3"
    }
}

extension SQLSession {
    /// Returns the rule for the hours of a run's devices, and a function that reads their opens. Returns `nil` for a
    /// run without `best_hour`.
    func bestHour(
        _ campaign: Campaign, _ waves: RecipientWaves?
    ) throws -> (policy: BestHourPolicy, opens: (Int64) throws -> [Int64])? {
        guard let waves, waves.band != nil else { return nil }
        var clocks = ZoneClocks(waves)
        let reader = OpenHours(self, clocks.span)
        let curve = try reader.curve(topic: campaign.deviceTopic, &clocks)
        guard let policy = BestHourPolicy(campaign, waves, clocks, curve: curve) else { return nil }
        return (policy, { try reader.opens(of: $0) })
    }

    /// Returns the opens of one device, as ``OpenHours/opens(of:)`` does.
    func opens(of device: Int64, _ span: Range<Timestamp>) throws -> [Int64] {
        try all(
            """
            SELECT DISTINCT \(SQLDialect.openQuarter) FROM feedback_event
            WHERE device_id = $1 AND \(SQLDialect.isOpen)
            """, device, span.lowerBound, span.upperBound
        ) { try $0.int64(0) }
    }
}
