import Model
import Store

/// The devices that a batch of records may mean, with the changes of the records decided so far. Each device has an
/// index, its place.
struct KnownDevices {
    /// A token with its scope. Texts are compared by their bytes, as in the database.
    private struct TokenKey: Hashable {
        let topic: String
        let environment: PushEnvironment
        let token: [UInt8]

        init(_ record: DeviceRecord) {
            topic = record.topic
            environment = record.environment
            token = record.token.bytes
        }
    }

    private struct InstallationKey: Hashable {
        let topic: String
        let name: [UInt8]

        init?(_ record: DeviceRecord) {
            guard let name = record.installationID else { return nil }
            topic = record.topic
            self.name = Array(name.utf8)
        }
    }

    /// The id of a device that is not written yet.
    static let unwritten: Int64 = 0

    private var devices: [StoredDevice] = []
    private var byToken: [TokenKey: Int] = [:]
    private var byInstallation: [InstallationKey: Int] = [:]
    private var givenUpTokens: Set<TokenKey> = []
    private var givenUpInstallations: Set<InstallationKey> = []

    subscript(place: Int) -> StoredDevice { devices[place] }

    func isWritten(_ place: Int) -> Bool { devices[place].id != Self.unwritten }

    func holder(of record: DeviceRecord) -> RegistrationPolicy.Known? { byToken[TokenKey(record)].map(known) }

    func named(by record: DeviceRecord) -> RegistrationPolicy.Known? {
        InstallationKey(record).flatMap { byInstallation[$0] }.map(known)
    }

    private func known(_ place: Int) -> RegistrationPolicy.Known {
        let record = devices[place].record
        return RegistrationPolicy.Known(
            id: Int64(place), installation: record.installationID, registeredAt: record.registeredAt)
    }

    /// Returns whether a device of this batch gave up the token or installation that the record names. The database may
    /// still assign it to that device.
    func isGivenUp(_ record: DeviceRecord) -> Bool {
        if !givenUpTokens.isEmpty, givenUpTokens.contains(TokenKey(record)) { return true }
        guard !givenUpInstallations.isEmpty, let key = InstallationKey(record) else { return false }
        return givenUpInstallations.contains(key)
    }

    /// Forgets the tokens and installations that devices gave up. Call it once everything is written.
    mutating func forgetGivenUp() {
        givenUpTokens.removeAll()
        givenUpInstallations.removeAll()
    }

    /// Adds a device and returns its place.
    @discardableResult
    mutating func add(_ device: StoredDevice) -> Int {
        let place = devices.count
        devices.append(device)
        byToken[TokenKey(device.record)] = place
        if let key = InstallationKey(device.record) { byInstallation[key] = place }
        return place
    }

    mutating func setID(_ id: Int64, of place: Int) { devices[place].id = id }

    /// Updates the device. Returns `false` if the record changes nothing.
    mutating func update(_ place: Int, with record: DeviceRecord) -> Bool {
        let old = InstallationKey(devices[place].record)
        let isChanged = devices[place].update(with: record)
        guard isChanged, let new = InstallationKey(devices[place].record), new != old else { return isChanged }
        if let old {
            byInstallation[old] = nil
            givenUpInstallations.insert(old)
        }
        byInstallation[new] = place
        return true
    }

    mutating func setToken(of place: Int, to record: DeviceRecord) {
        let old = TokenKey(devices[place].record)
        byToken[old] = nil
        givenUpTokens.insert(old)
        devices[place].setToken(to: record)
        byToken[TokenKey(record)] = place
    }

    /// Frees the keys of `gone`, and adds its tags to those of `kept`.
    mutating func absorb(_ gone: Int, into kept: Int) {
        let record = devices[gone].record
        byToken[TokenKey(record)] = nil
        if let key = InstallationKey(record) { byInstallation[key] = nil }
        let tags = Set(devices[kept].record.tags ?? []).union(record.tags ?? [])
        devices[kept].record.tags = tags.sorted()
    }
}
