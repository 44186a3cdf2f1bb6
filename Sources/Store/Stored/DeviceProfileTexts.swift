package import Model

/// The stored forms of what a record says about its device, worked out once per distinct text: a million records name
/// a few dozen locales and versions.
package struct DeviceProfileTexts: Sendable {
    private static let keptMax = 10_000

    private var locales: [String: String] = [:]
    private var versionKeys: [String: String?] = [:]

    package init() {}

    /// The tag in its usual letter case, or the text as it is when it is no tag.
    package mutating func locale(_ text: String?) -> String? {
        guard let text else { return nil }
        if let known = locales[text] { return known }
        if locales.count >= Self.keptMax { locales.removeAll() }
        let canonical = LocaleTag(text)?.description ?? text
        locales[text] = canonical
        return canonical
    }

    /// Nil for a text that is no version; it then compares with none.
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
    /// The columns of the table `device` that it empties; attributes are inside of one.
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
