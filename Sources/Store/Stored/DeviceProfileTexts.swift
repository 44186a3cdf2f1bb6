package import Model

/// The stored forms of the locales and versions in device records, computed once per distinct text: a million records
/// name a few dozen.
package struct DeviceProfileTexts: Sendable {
    private static let keptMax = 10_000

    private var locales: [String: String] = [:]
    private var versionKeys: [String: String?] = [:]

    package init() {}

    /// Returns the tag in its usual letter case, or the text itself if it is no tag.
    package mutating func locale(_ text: String?) -> String? {
        guard let text else { return nil }
        if let known = locales[text] { return known }
        if locales.count >= Self.keptMax { locales.removeAll() }
        let canonical = LocaleTag(text)?.description ?? text
        locales[text] = canonical
        return canonical
    }

    /// Returns `nil` for a text that is not a version. No comparison of versions then matches the device.
    package mutating func versionKey(_ text: String?) -> String? {
        guard let text else { return nil }
        if let known = versionKeys[text] { return known }
        if versionKeys.count >= Self.keptMax { versionKeys.removeAll() }
        let key = AppVersion(text)?.sortKey
        versionKeys[text] = .some(key)
        return key
    }
}

extension DeviceRecord.Erasure {
    /// The columns of the table `device` that the erasure empties. An attribute is only part of a column, so its
    /// erasure empties no column.
    package var columns: [String] {
        switch self {
        case .userID: ["user_id"]
        case .locale: ["locale"]
        case .timeZone: ["time_zone"]
        case .country: ["country"]
        case .appVersion: ["app_version", "app_version_key"]
        case .osVersion: ["os_version", "os_version_key"]
        case .model: ["model"]
        case .alertsAllowed: ["alerts_allowed"]
        case .attributes, .attribute: []
        }
    }
}
