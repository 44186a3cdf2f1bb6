import Model

/// Removes NUL characters, which PostgreSQL allows neither in texts nor in strings of JSON. SQLite stores NUL, and
/// the file readers allow it in attributes and in tags that are a list. The character has no meaning, so it is
/// removed before a look-up and before a write. The device itself is kept.
enum StorableText {
    static func isWhole(_ text: String) -> Bool { !text.utf8.contains(0) }

    static func without(_ text: String) -> String {
        isWhole(text) ? text : String(decoding: text.utf8.filter { $0 != 0 }, as: UTF8.self)
    }

    static func without(_ text: String?) -> String? { text.map { without($0) } }
}

extension DeviceRecord {
    /// The record without NUL characters.
    var storable: DeviceRecord {
        guard !isStorable else { return self }
        var record = self
        record.topic = StorableText.without(topic)
        record.installationID = StorableText.without(installationID)
        record.userID = StorableText.without(userID)
        record.locale = StorableText.without(locale)
        record.timeZone = StorableText.without(timeZone)
        record.country = StorableText.without(country)
        record.appVersion = StorableText.without(appVersion)
        record.osVersion = StorableText.without(osVersion)
        record.model = StorableText.without(model)
        record.tags = tags?.map { StorableText.without($0) }
        record.attributes = attributes.map { attributes in
            Dictionary(
                attributes.sorted { $0.key < $1.key }
                    .map { (StorableText.without($0.key), StorableText.without($0.value)) }
            ) { $1 }
        }
        return record
    }

    private var isStorable: Bool {
        for text in [installationID, userID, locale, timeZone, country, appVersion, osVersion, model] {
            guard text.map(StorableText.isWhole) ?? true else { return false }
        }
        return StorableText.isWhole(topic) && (tags?.allSatisfy(StorableText.isWhole) ?? true)
            && (attributes?.allSatisfy { StorableText.isWhole($0.key) && StorableText.isWhole($0.value) } ?? true)
    }
}
