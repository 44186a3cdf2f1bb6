import Model
import Store

/// The names under which a run's events of one kind are counted. Apps choose names, so their number is limited: the
/// first ``max`` names are kept, and a device adds at most ``perDeviceMax`` of them. Events with other names count as
/// ``FeedbackCell/otherName``.
struct FeedbackNames {
    /// The maximum number of names of a run and a kind.
    static let max = 50
    /// The maximum number of names that one device adds to a run. A notification shows at most four buttons.
    static let perDeviceMax = 5

    private var kept: Set<String>
    private var added: [Int64: Int] = [:]
    private let storedOfDevice: (_ device: Int64) throws -> Int

    init(kept: Set<String>, storedOfDevice: @escaping (_ device: Int64) throws -> Int) {
        self.kept = kept
        self.storedOfDevice = storedOfDevice
    }

    /// Reads the names that are kept. Skips from name to name along the primary key.
    init(_ db: some SQLSession, run: Int64, kind: FeedbackKind) throws {
        let names = try db.all(
            """
            WITH RECURSIVE known (name, number) AS (
                SELECT min(name), 1 FROM feedback_count
                WHERE run_id = $1 AND kind = $2 AND name <> '\(FeedbackCell.otherName)'
                UNION ALL
                SELECT (
                    SELECT min(name) FROM feedback_count
                    WHERE run_id = $1 AND kind = $2 AND name > known.name AND name <> '\(FeedbackCell.otherName)'
                ), number + 1 FROM known WHERE known.name IS NOT NULL AND number < \(Self.max)
            )
            SELECT name FROM known WHERE name IS NOT NULL
            """, run, kind.rawValue
        ) { try $0.text(0) }
        self.init(kept: Set(names)) { device in
            try db.all(
                """
                SELECT name FROM feedback_event WHERE device_id = $1 AND run_id = $2 AND kind = $3
                LIMIT \(Self.perDeviceMax)
                """, device, run, kind.rawValue
            ) { try $0.text(0) }.count
        }
    }

    /// Returns the name under which an event of a device is counted.
    mutating func counted(_ name: String, of device: Int64) throws -> String {
        if kept.contains(name) { return name }
        guard kept.count < Self.max else { return FeedbackCell.otherName }
        let before = try added[device] ?? storedOfDevice(device)
        guard before < Self.perDeviceMax else { return FeedbackCell.otherName }
        added[device] = before + 1
        kept.insert(name)
        return name
    }
}
