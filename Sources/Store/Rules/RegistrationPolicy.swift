package import Model

/// The rules of ``DeviceRegistry/importDevices(_:now:dryRun:)``: which device a record is about, and how the record
/// changes it.
package enum RegistrationPolicy {
    /// The assumed time for which a background push stays in flight after its device was merged into another. The
    /// outcome will be recorded under the old id, so the remaining device counts the push as if it ended this long
    /// after the merge.
    package static let flightMaxMs: Int64 = 3_600_000

    /// A device that a record may mean.
    package struct Known: Hashable, Sendable {
        /// The id by which the store finds the device again.
        package var id: Int64
        package var installation: String?
        package var registeredAt: Timestamp?

        package init(id: Int64, installation: String?, registeredAt: Timestamp?) {
            self.id = id
            self.installation = installation
            self.registeredAt = registeredAt
        }

        /// Whether this registration is newer than the record's. If so, the record says nothing about tokens.
        fileprivate func isNewer(than record: DeviceRecord) -> Bool {
            guard let registeredAt, let recorded = record.registeredAt else { return false }
            return recorded < registeredAt
        }

        /// Whether to record that the token was named now: neither the device nor the record has a registration time.
        package func isHeardOf(by record: DeviceRecord) -> Bool {
            registeredAt == nil && record.registeredAt == nil
        }
    }

    package enum Decision: Hashable, Sendable {
        /// No device has the token or the installation.
        case insert
        /// The record names the token that the device has.
        case confirm(Known)
        /// The record is too old to say anything about tokens.
        case update(Known)
        case replaceToken(Known)
        /// The record shows that the holder of the token and the device `into` are the same installation. The holder
        /// is removed.
        case merge(Known, into: Known)
        /// The token has moved to another installation since the record was made.
        case leave(Known)
    }

    /// - Parameters:
    ///   - holder: the device that has the record's token.
    ///   - named: finds the device of the record's installation. It is not called if the holder is that device, as it
    ///     is for nearly all records of a repeated list.
    package static func decide(
        _ record: DeviceRecord, holder: Known?, named: () throws -> Known?
    ) rethrows -> Decision {
        // Within a topic, an installation has only one device.
        if let holder, let name = record.installationID, holder.installation == name { return .confirm(holder) }
        switch (try record.installationID == nil ? nil : named(), holder) {
        case (nil, nil): return .insert
        case (nil, let holder?):
            let hasMoved = holder.installation != nil && record.installationID != nil && holder.isNewer(than: record)
            return hasMoved ? .leave(holder) : .confirm(holder)
        case (let device?, nil): return device.isNewer(than: record) ? .update(device) : .replaceToken(device)
        case (let device?, let holder?):
            if device.id == holder.id { return .confirm(device) }
            let isOld = device.isNewer(than: record) || holder.isNewer(than: record)
            return isOld ? .update(device) : .merge(holder, into: device)
        }
    }
}

extension DeviceRecord {
    /// Takes over everything that a later record names, except token, environment and topic. `registeredAt` and
    /// `lastSeenAt` never go back. Each of the two may itself combine several records. Returns `false` if nothing
    /// changed.
    package mutating func update(with later: DeviceRecord) -> Bool {
        var isChanged = erase(later.erased)
        isChanged = Self.take(later.installationID, &installationID) || isChanged
        isChanged = Self.take(later.userID, &userID) || isChanged
        isChanged = Self.take(later.locale, &locale) || isChanged
        isChanged = Self.take(later.timeZone, &timeZone) || isChanged
        isChanged = Self.take(later.country, &country) || isChanged
        isChanged = Self.take(later.appVersion, &appVersion) || isChanged
        isChanged = Self.take(later.osVersion, &osVersion) || isChanged
        isChanged = Self.take(later.model, &model) || isChanged
        isChanged = Self.take(later.alertsAllowed, &alertsAllowed) || isChanged
        isChanged = Self.take(later.badge, &badge) || isChanged
        isChanged = takeAttributes(of: later) || isChanged
        isChanged = Self.take(later.tags.map { Set($0).sorted() }, &tags) || isChanged
        isChanged = Self.advance(&registeredAt, to: later.registeredAt) || isChanged
        return Self.advance(&lastSeenAt, to: later.lastSeenAt) || isChanged
    }

    private mutating func erase(_ fields: Set<Erasure>) -> Bool {
        guard !fields.isEmpty else { return false }
        let before = self
        for field in fields {
            switch field {
            case .userID: userID = nil
            case .locale: locale = nil
            case .timeZone: timeZone = nil
            case .country: country = nil
            case .appVersion: appVersion = nil
            case .osVersion: osVersion = nil
            case .model: model = nil
            case .alertsAllowed: alertsAllowed = nil
            case .attributes: attributes?.removeAll()
            case .attribute(let name): attributes?[name] = nil
            }
        }
        let isChanged = self != before
        erased.formUnion(fields)
        return isChanged
    }

    private mutating func takeAttributes(of later: DeviceRecord) -> Bool {
        guard let set = later.attributes else { return false }
        // An empty set on top of no attributes is no change, but storing an empty list would be one.
        guard !set.isEmpty || attributes != nil || later.replacesAttributes else { return false }
        let known = attributes ?? [:]
        replacesAttributes = replacesAttributes || later.replacesAttributes
        let merged = later.replacesAttributes ? set : known.merging(set) { $1 }
        // Assign the attributes even if they are equal: a combined record must still show that one of its records
        // named attributes.
        attributes = merged
        return merged != known
    }

    private static func take<Value: Equatable>(_ later: Value?, _ value: inout Value?) -> Bool {
        guard let later, later != value else { return false }
        value = later
        return true
    }

    private static func advance(_ time: inout Timestamp?, to later: Timestamp?) -> Bool {
        guard let later, time.map({ $0 < later }) ?? true else { return false }
        time = later
        return true
    }
}

extension StoredDevice {
    /// Updates the device as ``Model/DeviceRecord/update(with:)`` does. A registration that is newer than the device's
    /// status makes the device active again.
    package mutating func update(with later: DeviceRecord) -> Bool {
        let isChanged = record.update(with: later)
        guard let registeredAt = later.registeredAt, let statusAt, registeredAt > statusAt else { return isChanged }
        (status, statusReason, self.statusAt) = (.active, nil, nil)
        return true
    }

    /// Sets a new token, which APNs has not accepted yet.
    package mutating func setToken(to later: DeviceRecord) {
        (record.token, record.environment) = (later.token, later.environment)
        (generation, isProven) = (generation + 1, false)
        (status, statusReason, statusAt) = (.active, nil, nil)
    }
}
