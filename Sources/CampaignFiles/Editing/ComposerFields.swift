import Model

/// The fields of the composer's form for a campaign and its template, by name, as read from the two files.
///
/// Every field is a text. An empty text means that the file does not have the value. The names are those of the file's
/// keys where there are such, for example `alert.pt-BR.title`, `variables.show` or `badge`.
package struct ComposerFields: Hashable, Sendable {
    package var values: [String: String]

    package init(_ values: [String: String] = [:]) { self.values = values }

    package subscript(name: String) -> String {
        get { values[name, default: ""] }
        set { values[name] = newValue }
    }

    /// Returns the parts of the names behind a prefix, for example the languages behind `alert.`.
    package func names(behind prefix: String) -> [String] {
        values.keys.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }.sorted()
    }

    /// The languages of the texts, in no order.
    package var languages: Set<String> {
        Set(names(behind: "alert.").compactMap { $0.split(separator: ".").first.map(String.init) })
    }

    /// Whether the file has a zone for devices without one: the send, or its quiet hours, follow each device's clock.
    package var usesUnknownZone: Bool {
        ["once", "repeat"].contains(self["start"])
            ? self["zone"] == "recipient" : !self["quiet.from"].isEmpty || !self["quiet.to"].isEmpty
    }

    /// The chosen countries that are neither a code nor an English name, as they are written.
    package var unknownCountries: [String] {
        AudienceFields.countries(self["who.countries"]).filter { !CountryCode.isWellFormed($0.utf8) }
    }

    package static func summary(unknownCountry name: String) -> String {
        "Who: “\(name)” is not a country. Write its English name or its code of two letters, such as Germany or DE."
    }

    /// The usual names of an app's own key for the address of a picture.
    package static let pictureKeys = ["image_url", "image", "media_url"]
    /// The parts of a text in one language.
    package static let textParts = ["title", "subtitle", "body"]
    package static let weekdays = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
}

/// A campaign file and its template file, as the composer opens them.
package struct ComposedFiles: Sendable {
    package var fields: ComposerFields
    /// The languages in the order of the file.
    package var languages: [String]
    /// The variables in the order of the file.
    package var variables: [String]
    /// The reason why the form cannot show the files at all. `nil` if it can.
    package var obstacle: String?
    /// The keys that only the files show, such as `stages`.
    package var keysBeyond: [String]

    let template: String
    let campaign: String
    /// The content of the template file. `nil` if it cannot be read.
    let content: FileNode?
    /// The content of the campaign file. `nil` if it cannot be read.
    let campaignContent: FileNode?

    /// - Parameters:
    ///   - campaign: the text of the campaign file.
    ///   - template: the text of its template file.
    package init(campaign: String, template: String) {
        self.campaign = campaign
        self.template = template
        fields = ComposerFields()
        (languages, variables, keysBeyond) = ([], [], [])
        content = Self.root(template)
        campaignContent = Self.root(campaign)
        guard let root = campaignContent else {
            obstacle = "The campaign file cannot be read. Correct the file first."
            return
        }
        guard let content else {
            obstacle = "The template file cannot be read. Correct the file first."
            return
        }
        obstacle = Self.obstacle(campaign: root, template: content)
        fields.values = CampaignFields.read(root).merging(TemplateFields.read(content)) { $1 }
        languages = content["alert"]?.keys ?? []
        variables = root["variables"]?.keys ?? []
        keysBeyond = CampaignFields.beyond(root) + TemplateFields.beyond(content)
    }

    private static func root(_ text: String) -> FileNode? {
        let collector = DiagnosticCollector(path: "", text: text)
        guard let node = YAMLDocument.read(FileText.withoutMark(text), into: collector), !collector.hasErrors,
            YAMLTree(node) != nil, case .object = node.content
        else { return nil }
        return node
    }

    private static func obstacle(campaign: FileNode, template: FileNode) -> String? {
        if let kind = campaign["push_type"]?.text, kind != PushType.alert.rawValue {
            return "The form is for notifications that people read. This campaign sends a push of the type \(kind)."
        }
        if campaign["variants"] != nil {
            return
                "Each variant of this campaign has its own template, but the form can show only one. Edit the files here."
        }
        if let key = template["alert"]?.keys.first(where: { TemplateFields.appKeys.contains($0) }) {
            return "The form is for texts in the file. The key \(key) refers to texts that the app translates."
        }
        for key in ["event", "mdm"] where template[key] != nil {
            return "The form is for notifications that people read. The template has the key \(key)."
        }
        return nil
    }

    /// Returns the files with the changed fields. Only the lines of changed values change.
    ///
    /// - Parameter changed: the form's fields. A field that it does not have stays as it is.
    package func edited(_ changed: ComposerFields) throws(YAMLText.Fault) -> (campaign: String, template: String) {
        var new = fields
        new.values.merge(changed.values) { $1 }
        for name in new.names(behind: Self.removal) where new["\(Self.removal)\(name)"] == "on" {
            new.values["variables.\(name)"] = nil
            new.values["feed.variables.\(name)"] = nil
        }
        addVariables(to: &new)
        var campaign = YAMLText(self.campaign, order: CampaignFields.order)
        try campaign.apply(
            Self.edits(CampaignFields.values(fields, files: self), CampaignFields.values(new, files: self)))
        var template = YAMLText(self.template, order: TemplateFields.order)
        try template.apply(
            Self.edits(TemplateFields.values(fields, files: self), TemplateFields.values(new, files: self)))
        return (campaign.written, template.written)
    }

    /// Declares the variables that the new texts use.
    private func addVariables(to new: inout ComposerFields) {
        let texts = new.values.filter { name, _ in
            name.hasPrefix("alert.") || ["link", "image", "thread_id"].contains(name)
        }.map(\.value)
        for text in texts {
            // A text with a mistake declares nothing. The check of the files reports it.
            guard let parsed = try? TemplateText(parsing: text) else { continue }
            for name in parsed.variables where new.values["variables.\(name)"] == nil {
                new["variables.\(name)"] = ""
            }
        }
    }

    /// The beginning of the field that removes a variable. A variable that a text uses stays.
    package static let removal = "remove.variables."

    /// Whether the template uses a variable.
    package func uses(_ variable: String) -> Bool {
        template.holds("{{\(variable)}}") || template.holds("{{ \(variable) }}")
    }

    private static func edits(_ old: [[String]: YAMLValue], _ new: [[String]: YAMLValue]) -> [YAMLText.Edit] {
        let removed = old.keys.filter { new[$0] == nil }.map { YAMLText.Edit($0, nil) }
        let set = new.filter { old[$0.key] != $0.value }.map { YAMLText.Edit($0.key, $0.value) }
        let byPath = { (one: YAMLText.Edit, other: YAMLText.Edit) in one.path.lexicographicallyPrecedes(other.path) }
        // New values come first, so that no object becomes empty in between and loses its comments.
        return set.sorted(by: byPath) + removed.sorted(by: byPath)
    }
}

extension FileNode {
    subscript(name: String) -> FileNode? {
        guard case .object(let members) = content else { return nil }
        return members.first { $0.key == name }?.value
    }

    /// The keys of an object in the order of the file.
    var keys: [String] {
        guard case .object(let members) = content else { return [] }
        return members.map(\.key)
    }

    func text(_ path: String...) -> String {
        var node: FileNode? = self
        for name in path { node = node?[name] }
        guard let node, !node.isNothing else { return "" }
        return node.text ?? ""
    }
}
