/// The composer's fields of a template file.
enum TemplateFields {
    /// Keys under `alert` that refer to the app's own texts.
    static let appKeys = TemplateKeys.ByApp.shape.keys.map(\.name)
    static let order = [
        "": TemplateKeys.shape.keys.map(\.name), "alert.*": ComposerFields.textParts,
    ]

    private static let plainKeys = ["default_locale", "sound", "badge", "interruption_level"]
    private static let texts = ["category", "thread_id"]
    /// The usual names of an app's own key for the address that a tap opens.
    private static let links = ["link_url", "link", "url", "deep_link"]
    private static let images = ComposerFields.pictureKeys

    static func read(_ root: FileNode) -> [String: String] {
        var values: [String: String] = [:]
        for locale in root["alert"]?.keys ?? [] {
            for part in ComposerFields.textParts {
                values["alert.\(locale).\(part)"] = root.text("alert", locale, part)
            }
        }
        for name in plainKeys + texts { values[name] = root.text(name) }
        values["link"] = root.text("custom", key(of: links, in: root))
        values["image"] = root.text("custom", key(of: images, in: root))
        return values
    }

    /// Returns the values of the file, by path.
    static func values(_ fields: ComposerFields, files: ComposedFiles) -> [[String]: YAMLValue] {
        var values: [[String]: YAMLValue] = [:]
        for locale in fields.languages {
            for part in ComposerFields.textParts {
                let text = fields["alert.\(locale).\(part)"]
                if !text.isEmpty { values[["alert", locale, part]] = .text(text) }
            }
        }
        for name in plainKeys where !fields[name].isEmpty { values[[name]] = .word(fields[name]) }
        for name in texts where !fields[name].isEmpty { values[[name]] = .text(fields[name]) }
        let root = files.content
        if !fields["link"].isEmpty { values[["custom", key(of: links, in: root)]] = .text(fields["link"]) }
        if !fields["image"].isEmpty {
            values[["custom", key(of: images, in: root)]] = .text(fields["image"])
            // The app's extension loads the picture.
            values[["mutable_content"]] = .word("true")
        }
        return values
    }

    static func beyond(_ root: FileNode) -> [String] {
        let shown = Set(fieldKeys + ["template", "alert", "custom", "mutable_content"])
        var keys = root.keys.filter { !shown.contains($0) }
        if let sound = root["sound"], sound.text == nil { keys.append("sound") }
        let own = root["custom"]?.keys ?? []
        let known = [key(of: links, in: root), key(of: images, in: root)]
        if own.contains(where: { !known.contains($0) }) { keys.append("custom") }
        return keys
    }

    /// The keys at the root of the file that are fields of their own.
    static let fieldKeys = plainKeys + texts

    /// Returns the field for an own key of the app: the link's or the picture's.
    static func ownField(_ name: String, in root: FileNode) -> String? {
        if name == key(of: links, in: root) { return "link" }
        return name == key(of: images, in: root) ? "image" : nil
    }

    private static func key(of names: [String], in root: FileNode?) -> String {
        let own = root?["custom"]
        return names.first { own?[$0]?.text != nil } ?? names.first { own?[$0] == nil } ?? names[0]
    }
}
