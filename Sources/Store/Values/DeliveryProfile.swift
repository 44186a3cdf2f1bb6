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
}

/// The distinct profiles of a batch of deliveries. Each is stored once, and a delivery holds the number of its profile.
///
/// - Parameter Key: identifies a profile.
package struct BatchProfiles<Key: Hashable & Sendable>: Sendable {
    package private(set) var all: [DeliveryProfile] = []
    private var indexes: [Key: Int] = [:]
    private var last: (key: Key, index: Int)?

    package init() {}

    /// Returns the index of a profile in ``all``. `profile` is called for one that is new.
    package mutating func index(_ key: Key, _ profile: () throws -> DeliveryProfile) rethrows -> Int {
        if let last, last.key == key { return last.index }
        let index = try indexes[key] ?? add(key, profile())
        last = (key, index)
        return index
    }

    private mutating func add(_ key: Key, _ profile: DeliveryProfile) -> Int {
        all.append(profile)
        indexes[key] = all.count - 1
        return all.count - 1
    }
}
