import Model

/// The reason why a line of an import cannot be used. It never contains a token.
package struct LineFault: Error, Hashable, Sendable {
    package var reason: String

    package init(reason: String) { self.reason = reason }
}

/// Builds a device from the texts of its columns, and checks each text. A cache avoids repeated conversions of the
/// same text.
struct DeviceRecordBuilder {
    private typealias Checked = Result<String, LineFault>

    /// Whether the attributes of a line replace all of the device's attributes.
    let replacesAttributes: Bool
    private var record: Partial
    private var environments = ByteCache<PushEnvironment?>()
    private var topics = ByteCache<Checked>()
    private var locales = ByteCache<Checked>()
    private var timeZones = ByteCache<Checked>()
    private var countries = ByteCache<Checked>()
    private var appVersions = ByteCache<Checked>()
    private var osVersions = ByteCache<Checked>()
    private var models = ByteCache<Checked>()
    private var tagLists = ByteCache<[String]?>()
    private var attributeValues = ByteCache<String?>()

    private struct Partial {
        var token: DeviceToken?
        var environment: PushEnvironment?
        var topic: String?
        var installationID: String?
        var userID: String?
        var locale: String?
        var timeZone: String?
        var country: String?
        var appVersion: String?
        var osVersion: String?
        var model: String?
        var alertsAllowed: Bool?
        var registeredAt: Timestamp?
        var lastSeenAt: Timestamp?
        var badge: Int?
        var tags: [String]?
        var attributes: [String: String]?
        /// The size of the attributes so far, with their names.
        var attributesBytes = 0
        /// Whether the line contains attributes, even empty ones.
        var namesAttributes = false
        var erased: Set<DeviceRecord.Erasure> = []
    }

    init(replacesAttributes: Bool) {
        self.replacesAttributes = replacesAttributes
        record = Partial()
    }

    mutating func begin() {
        record = Partial()
    }

    /// Returns the device. Throws if a required value is missing.
    func finish() throws(LineFault) -> DeviceRecord {
        guard let token = record.token else { throw LineFault(reason: "token is missing") }
        guard let environment = record.environment else { throw LineFault(reason: "environment is missing") }
        guard let topic = record.topic else { throw LineFault(reason: "topic is missing") }
        var device = DeviceRecord(token: token, environment: environment, topic: topic)
        device.installationID = record.installationID
        device.userID = record.userID
        device.locale = record.locale
        device.timeZone = record.timeZone
        device.country = record.country
        device.appVersion = record.appVersion
        device.osVersion = record.osVersion
        device.model = record.model
        device.alertsAllowed = record.alertsAllowed
        device.registeredAt = record.registeredAt
        device.lastSeenAt = record.lastSeenAt
        device.badge = record.badge
        device.tags = record.tags
        device.attributes = record.attributes
        device.erased = record.erased
        if replacesAttributes, record.namesAttributes {
            device.attributes = record.attributes ?? [:]
            device.replacesAttributes = true
        }
        return device
    }

    /// Sets a value. An empty text leaves the stored value unchanged, and ``EraseMarker`` removes it.
    mutating func set(_ column: DeviceColumn, _ bytes: [UInt8], _ range: Range<Int>) throws(LineFault) {
        if column.isAttribute { record.namesAttributes = true }
        if range.isEmpty { return }
        if EraseMarker.isMarker(bytes, range) { return try erase(column) }
        let range = EraseMarker.value(bytes, range)
        switch column {
        case .token: record.token = try DeviceText.token(bytes, range)
        case .environment:
            record.environment = environments.value(bytes, range) { DeviceText.environment($0) }
            guard record.environment != nil else {
                throw LineFault(reason: "environment is neither production nor sandbox")
            }
        case .topic: record.topic = try topics.value(bytes, range) { DeviceText.topic($0) }.get()
        case .installationID: record.installationID = try DeviceText.identifier(bytes[range], column.name)
        case .userID: record.userID = try DeviceText.identifier(bytes[range], column.name)
        case .locale: record.locale = try locales.value(bytes, range) { DeviceText.locale($0) }.get()
        case .timeZone: record.timeZone = try timeZones.value(bytes, range) { DeviceText.timeZone($0) }.get()
        case .country: record.country = try countries.value(bytes, range) { DeviceText.country($0) }.get()
        case .appVersion:
            record.appVersion = try appVersions.value(bytes, range) { DeviceText.version($0, "app_version") }.get()
        case .osVersion:
            record.osVersion = try osVersions.value(bytes, range) { DeviceText.version($0, "os_version") }.get()
        case .model: record.model = try models.value(bytes, range) { DeviceText.plain($0, "model") }.get()
        case .alertsAllowed: record.alertsAllowed = try DeviceText.boolean(bytes[range], column.name)
        case .registeredAt: record.registeredAt = try DeviceText.time(bytes, range, column.name)
        case .lastSeenAt: record.lastSeenAt = try DeviceText.time(bytes, range, column.name)
        case .badge: record.badge = try DeviceText.count(bytes[range], column.name)
        case .tags:
            guard let tags = tagLists.value(bytes, range, make: { DeviceText.tags($0) }) else {
                throw LineFault(reason: "tags are not one line of UTF-8 text")
            }
            try setTags(tags)
        case .attribute(let key):
            try DeviceText.attribute(key, bytes[range])
            guard let value = attributeValues.value(bytes, range, make: { String(validating: $0, as: UTF8.self) })
            else { throw LineFault(reason: "\(column.name) is not UTF-8 text") }
            let size = record.attributesBytes + key.utf8.count + value.utf8.count
            try DeviceText.attributes(bytes: size)
            record.attributesBytes = size
            record.attributes = record.attributes ?? [:]
            record.attributes?[key] = value
        case .attributes: throw LineFault(reason: "attributes is not a JSON object")
        case .unknown: break
        }
    }

    mutating func setTags(_ tags: [String]) throws(LineFault) {
        try DeviceText.checkLengths(ofTags: tags)
        record.tags = tags
    }

    /// Begins an object of attributes. Each attribute is set separately.
    mutating func beginAttributes() {
        record.namesAttributes = true
    }

    private mutating func erase(_ column: DeviceColumn) throws(LineFault) {
        if column == .tags { return record.tags = [] }
        guard let field = column.erasure else {
            throw LineFault(reason: "\(column.name) cannot be removed; leave the cell empty to keep the value")
        }
        record.erased.insert(field)
    }
}

extension DeviceColumn {
    fileprivate var isAttribute: Bool {
        if case .attribute = self { true } else { self == .attributes }
    }

    /// The removable value of the column. `nil` if it cannot be removed.
    fileprivate var erasure: DeviceRecord.Erasure? {
        switch self {
        case .token, .environment, .topic, .installationID, .registeredAt, .lastSeenAt, .badge, .tags, .unknown: nil
        case .userID: .userID
        case .locale: .locale
        case .timeZone: .timeZone
        case .country: .country
        case .appVersion: .appVersion
        case .osVersion: .osVersion
        case .model: .model
        case .alertsAllowed: .alertsAllowed
        case .attributes: .attributes
        case .attribute(let name): .attribute(name)
        }
    }
}

/// A cache of converted texts, for columns with few different values. It is a hash table with a fixed number of slots.
/// A new text replaces the old text in its slot.
struct ByteCache<Value> {
    /// A power of two.
    private static var slotsCount: Int { 512 }
    /// The maximum length of a cached text. Longer texts are rare, and cached texts stay in memory for long.
    private static var keyBytesMax: Int { 256 }

    private struct Entry {
        var key: [UInt8]
        var value: Value
    }

    private var entries: [Entry?] = Array(repeating: nil, count: slotsCount)

    /// Returns the cached value for these bytes, or creates it.
    mutating func value(_ bytes: [UInt8], _ range: Range<Int>, make: (ArraySlice<UInt8>) -> Value) -> Value {
        let index = Self.slot(of: bytes, range)
        if let entry = entries[index], Self.isEqual(entry.key, bytes, range) { return entry.value }
        let value = make(bytes[range])
        guard range.count <= Self.keyBytesMax else { return value }
        entries[index] = Entry(key: Array(bytes[range]), value: value)
        return value
    }

    private static func slot(of bytes: [UInt8], _ range: Range<Int>) -> Int {
        let hash = FNV1a.hash(bytes: bytes[range].span)
        return Int(truncatingIfNeeded: hash ^ (hash >> 32)) & (slotsCount - 1)
    }

    private static func isEqual(_ key: [UInt8], _ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard key.count == range.count else { return false }
        for index in key.indices where key[index] != bytes[range.lowerBound + index] { return false }
        return true
    }
}
