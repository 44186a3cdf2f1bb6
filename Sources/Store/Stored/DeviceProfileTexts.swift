import Model

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
