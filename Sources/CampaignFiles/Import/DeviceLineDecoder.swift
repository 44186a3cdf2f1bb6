import Model

/// Decodes a CSV record or a JSON line into a device.
struct DeviceLineDecoder: RecordDecoder {
    /// The columns of a CSV file in order. `nil` for JSON Lines.
    let columns: [DeviceColumn]?
    private let tokenIndex: Int?
    /// Whether an unusable value is left out and the device is kept.
    private let isLenient: Bool
    /// Whether an unknown key of a JSON object is left out. Otherwise its line is unusable.
    private let leavesOutUnknown: Bool
    /// The keys of JSON objects that were read so far, if unknown ones are left out: at most ``keysMax``.
    private(set) var keysRead: [String] = []
    private static let keysMax = 100
    /// Whether the caller may import devices of a topic. `nil` allows all topics.
    private let isAllowed: (@Sendable (_ topic: String) -> Bool)?
    private var builder: DeviceRecordBuilder
    private var keys = ByteCache<DeviceColumn?>()
    /// The reasons for the values that were left out of the latest record.
    private(set) var oddValues: [String] = []

    init(
        columns: [DeviceColumn]?, isLenient: Bool = false, leavesOutUnknown: Bool = false,
        replacesAttributes: Bool = false, isAllowed: (@Sendable (_ topic: String) -> Bool)? = nil
    ) {
        self.isAllowed = isAllowed
        self.leavesOutUnknown = leavesOutUnknown
        self.columns = columns
        self.isLenient = isLenient
        tokenIndex = columns?.firstIndex(of: .token)
        builder = DeviceRecordBuilder(replacesAttributes: replacesAttributes)
    }

    mutating func decode(
        _ bytes: [UInt8], _ range: Range<Int>, fields: [CSVField]
    ) throws(LineFault) -> DeviceRecord {
        builder.begin()
        oddValues.removeAll(keepingCapacity: true)
        if let columns {
            try setFields(bytes, fields, columns)
        } else {
            try setMembers(try JSONLineReader.members(bytes, range))
        }
        let device = try builder.finish()
        if let isAllowed, !isAllowed(device.topic) {
            throw LineFault(reason: "topic \(quoted(device.topic)) does not belong to your app")
        }
        return device
    }

    /// Decodes a device with a known topic and installation. The object may repeat these values, but not with
    /// different ones.
    mutating func decode(_ bytes: [UInt8], topic: String, installation: String) throws(LineFault) -> DeviceRecord {
        builder.begin()
        let known = [(DeviceColumn.topic, Array(topic.utf8)), (.installationID, Array(installation.utf8))]
        for (column, text) in known { try builder.set(column, text, text.indices) }
        try setMembers(try JSONLineReader.members(bytes, bytes.indices))
        let device = try builder.finish()
        guard device.topic == topic else {
            throw LineFault(reason: "topic is \(quoted(device.topic)), the URL has \(quoted(topic))")
        }
        guard device.installationID == installation else {
            throw LineFault(reason: "installation_id differs from the one in the URL")
        }
        return device
    }

    func tokenRange(_ bytes: [UInt8], _ range: Range<Int>, fields: [CSVField]?) -> Range<Int>? {
        guard let fields else { return nil }
        if let tokenIndex {
            let field = tokenIndex < fields.count ? fields[tokenIndex].range : nil
            return field.flatMap { range.contains($0.lowerBound) && $0.upperBound <= range.upperBound ? $0 : nil }
        }
        let key = Array("\"token\"".utf8)
        guard let start = range.first(where: { bytes[$0..<range.upperBound].starts(with: key) }) else { return nil }
        let quote = UInt8(ascii: "\"")
        guard let open = bytes[(start + key.count)..<range.upperBound].firstIndex(of: quote) else { return nil }
        return open + 1..<(bytes[(open + 1)..<range.upperBound].firstIndex(of: quote) ?? range.upperBound)
    }

    private mutating func setFields(
        _ bytes: [UInt8], _ fields: [CSVField], _ columns: [DeviceColumn]
    ) throws(LineFault) {
        guard fields.count == columns.count else {
            throw LineFault(reason: "\(fields.count) fields, but the header has \(columns.count)")
        }
        for index in columns.indices where columns[index] != .unknown {
            let field = fields[index]
            if field.hasDoubledQuotes {
                let text = field.unescaped(bytes)
                try set(columns[index], text, text.indices)
            } else {
                try set(columns[index], bytes, field.range)
            }
        }
    }

    /// Sets the value of a CSV cell.
    private mutating func set(_ column: DeviceColumn, _ bytes: [UInt8], _ range: Range<Int>) throws(LineFault) {
        try allowing(column) { (decoder: inout DeviceLineDecoder) throws(LineFault) in
            guard column == .attributes, !range.isEmpty, !EraseMarker.isMarker(bytes, range) else {
                return try decoder.builder.set(column, bytes, range)
            }
            guard let members = try? JSONLineReader.members(bytes, range) else {
                throw LineFault(reason: "attributes is not a JSON object")
            }
            try decoder.setValue(column, .object(members))
        }
    }

    /// Sets a value. If the decoder is lenient and the column is dispensable, records an unusable value in
    /// ``oddValues`` instead of throwing.
    private mutating func allowing(
        _ column: DeviceColumn, _ set: (inout DeviceLineDecoder) throws(LineFault) -> Void
    ) throws(LineFault) {
        do throws(LineFault) {
            try set(&self)
        } catch {
            guard isLenient, column.isDispensable else { throw error }
            oddValues.append(error.reason)
        }
    }

    private mutating func setMembers(_ members: [JSONLineReader.Member]) throws(LineFault) {
        try Self.requireOnce(members)
        for member in members {
            var isNew = false
            let column = keys.value(member.key, member.key.indices) {
                isNew = true
                return DeviceColumn(named: String(decoding: $0, as: UTF8.self))
            }
            if isNew, leavesOutUnknown { addKey(member.key) }
            guard let column else {
                if leavesOutUnknown { continue }
                let name = String(decoding: member.key.prefix(60), as: UTF8.self)
                throw LineFault(reason: "unknown key \(quoted(name)); \(DeviceColumn.advice(for: name))")
            }
            try set(column, member.value)
        }
    }

    private mutating func addKey(_ key: [UInt8]) {
        let name = String(decoding: key.prefix(60), as: UTF8.self)
        if keysRead.count < Self.keysMax, !keysRead.contains(name) { keysRead.append(name) }
    }

    /// Refuses a repeated key, because its values may contradict each other.
    private static func requireOnce(_ members: [JSONLineReader.Member]) throws(LineFault) {
        var known: Set<[UInt8]> = []
        for member in members where !known.insert(member.key).inserted {
            throw LineFault(
                reason: "the key \(quoted(String(decoding: member.key.prefix(60), as: UTF8.self))) appears twice")
        }
    }

    private mutating func set(_ column: DeviceColumn, _ value: JSONLineReader.Value) throws(LineFault) {
        try allowing(column) { (decoder: inout DeviceLineDecoder) throws(LineFault) in
            try decoder.setValue(column, value)
        }
    }

    private mutating func setValue(_ column: DeviceColumn, _ value: JSONLineReader.Value) throws(LineFault) {
        switch (column, value) {
        case (_, .null): break
        case (.tags, .list(let values)):
            var tags: [String] = []
            for value in values {
                guard case .text(let bytes) = value, let tag = String(validating: bytes, as: UTF8.self) else {
                    throw LineFault(reason: "tags is not a list of strings")
                }
                tags.append(tag)
            }
            try builder.setTags(tags)
        case (.attributes, .object(let members)):
            try Self.requireOnce(members)
            builder.beginAttributes()
            for member in members {
                try set(.attribute(String(decoding: member.key, as: UTF8.self)), member.value)
            }
        case (_, .text(let bytes)), (_, .number(let bytes)): try builder.set(column, bytes, bytes.indices)
        case (.alertsAllowed, .boolean(let truth)), (.attribute, .boolean(let truth)):
            let bytes = Array((truth ? "true" : "false").utf8)
            try builder.set(column, bytes, bytes.indices)
        case (_, .boolean), (_, .list), (_, .object):
            throw LineFault(reason: "\(column.name) has a value of the wrong type")
        }
    }
}

/// A column of a device import: a CSV column or a key of JSON Lines.
enum DeviceColumn: Hashable, Sendable {
    case token, environment, topic, installationID, userID, locale, timeZone, country, appVersion, osVersion, model
    case alertsAllowed, registeredAt, lastSeenAt, badge, tags
    /// `attributes`, a JSON object. In CSV, a cell contains the JSON.
    case attributes
    /// `attributes.plan`.
    case attribute(String)
    /// A column that the reader leaves out.
    case unknown

    static let named: [(name: String, column: DeviceColumn)] = [
        ("token", .token), ("environment", .environment), ("topic", .topic), ("installation_id", .installationID),
        ("user_id", .userID), ("locale", .locale), ("time_zone", .timeZone), ("country", .country),
        ("app_version", .appVersion), ("os_version", .osVersion), ("model", .model),
        ("alerts_allowed", .alertsAllowed), ("registered_at", .registeredAt), ("last_seen_at", .lastSeenAt),
        ("badge", .badge), ("tags", .tags), ("attributes", .attributes),
    ]

    static let required: [DeviceColumn] = [.token, .environment, .topic]

    /// Whether a device can be imported without the column. Such a column neither determines the destination nor
    /// identifies the device.
    var isDispensable: Bool { !Self.required.contains(self) && self != .installationID }

    init?(named name: String) {
        let lowered = name.lowercased()
        if let match = Self.named.first(where: { $0.name == lowered }) {
            self = match.column
        } else if lowered.hasPrefix("attributes."), name.utf8.count > "attributes.".utf8.count {
            self = .attribute(String(name.dropFirst("attributes.".count)))
        } else {
            return nil
        }
    }

    var name: String {
        if case .attribute(let key) = self { return "attributes.\(key)" }
        return Self.named.first { $0.column == self }?.name ?? ""
    }

    /// Returns advice for an unknown column name.
    static func advice(for name: String) -> String {
        let names = named.map(\.name)
        if let nearest = Suggestion.nearest(to: name, among: names) { return "did you mean \(quoted(nearest))?" }
        return "columns are \(names.joined(separator: ", ")) and attributes.NAME"
    }
}
