import Model

/// The properties of a device when the audience of a run was frozen, as far as reports and exports need them. A later
/// import changes none of them. An empty text means that the value was not known.
package struct DeliveryProfile: Hashable, Sendable {
    package var locale, appVersion, timeZone, country: String

    package init(locale: String?, appVersion: String?, timeZone: String?, country: String?) {
        self.locale = locale ?? ""
        self.appVersion = appVersion ?? ""
        self.timeZone = timeZone ?? ""
        self.country = country ?? ""
    }

    /// The key of the profile in a batch.
    package var key: UInt64 {
        [locale, appVersion, timeZone, country].reduce(0) { BatchProfiles.key($0, adding: FNV1a.hash($1)) }
    }
}

/// The distinct profiles of a batch of deliveries. Each is stored once, and a delivery holds the number of its profile.
///
/// The key of a profile is a hash of its texts. The type is not generic over its key, because generic code is not
/// specialised across modules, and a freeze calls it for each device.
package struct BatchProfiles: Sendable {
    package private(set) var all: [DeliveryProfile] = []
    private var indexes: [UInt64: Int] = [:]
    private var last: (key: UInt64, index: Int)?

    package init() {}

    /// Returns the key of a list of texts after one text is added. `key` is the list's key, and `hash` is the hash of
    /// the text.
    package static func key(_ key: UInt64, adding hash: UInt64) -> UInt64 { (key ^ hash) &* 0x9E37_79B9_7F4A_7C15 }

    /// Returns the index of a profile in ``all``. `profile` is called only if the key is new.
    package mutating func index(_ key: UInt64, _ profile: () throws -> DeliveryProfile) rethrows -> Int {
        if let last, last.key == key { return last.index }
        let index = try indexes[key] ?? add(key, profile())
        last = (key, index)
        return index
    }

    private mutating func add(_ key: UInt64, _ profile: DeliveryProfile) -> Int {
        all.append(profile)
        indexes[key] = all.count - 1
        return all.count - 1
    }
}
