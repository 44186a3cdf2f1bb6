import Foundation
package import Model

/// The changes since the campaign's last finished run.
package struct RunDifference: Hashable, Sendable {
    /// A change of a text or setting of a template: `de.title`, `sound`, `custom.link_url`.
    package struct Change: Hashable, Sendable {
        package enum Kind: String, Hashable, Sendable {
            case added, removed, changed
        }

        /// `nil` in a campaign without variants.
        package var variant: String?
        /// `nil` for a setting that does not depend on the language.
        package var locale: String?
        /// `nil` if a language was added or removed as a whole.
        package var key: String?
        package var kind: Kind
    }

    package var run: Run
    package var reachBefore: Int
    package var reachNow: Int
    package var texts: [Change]
    /// Names of variables with another value.
    package var variables: [String]
    /// Keys of the campaign file with another value.
    package var keys: [String]

    init(from previous: PreviousRun, to definition: RunDefinition, reach: Int) throws {
        run = previous.run
        reachBefore = previous.reach
        reachNow = reach
        let before = previous.run.definition
        texts = try Self.templates(before, definition).flatMap { variant, old, new in
            try TemplateOutline.changes(from: TemplateOutline(old), to: TemplateOutline(new), variant: variant)
        }
        variables = Set(before.variables.keys).union(definition.variables.keys)
            .filter { before.variables[$0] != definition.variables[$0] }.sorted()
        keys = try CampaignOutline.changedKeys(before.campaign, definition.campaign)
    }

    /// Returns the templates to compare with each other. A variant that was added or removed counts as a changed key.
    private static func templates(
        _ before: RunDefinition, _ now: RunDefinition
    ) -> [(variant: String?, old: Template, new: Template)] {
        let common = now.campaign.variants.map(\.name).filter { name in
            before.campaign.variants.contains { $0.name == name }
        }
        guard !common.isEmpty else { return [(nil, before.template, now.template)] }
        return common.map { name in
            (name, before.variantTemplates[name] ?? before.template, now.variantTemplates[name] ?? now.template)
        }
    }
}

extension [RunDifference.Change] {
    /// The changes in words, by language: `de: body, title; sound added`.
    var summary: String {
        var groups: [(name: String, keys: [String])] = []
        for change in self {
            let name = [change.variant.map { "variant \($0)" }, change.locale].compactMap(\.self).joined(separator: " ")
            let word = change.kind == .changed ? "" : " \(change.kind.rawValue)"
            let key = change.key.map { $0 + word } ?? change.kind.rawValue
            if let last = groups.indices.last, groups[last].name == name {
                groups[last].keys.append(key)
            } else {
                groups.append((name, [key]))
            }
        }
        return groups.map { ($0.name.isEmpty ? "" : "\($0.name): ") + $0.keys.joined(separator: ", ") }
            .joined(separator: "; ")
    }
}

/// A template as parts with names, such as `de.title` or `sound`, each with a value to compare.
struct TemplateOutline {
    /// By locale, then by `title`, `subtitle` and `body`.
    private var texts: [String: [String: TemplateText]] = [:]
    private var locales: [String] = []
    /// All other settings, by their key in the file.
    private var settings: [String: Data] = [:]

    init(_ template: Template) throws {
        if case .localized(let blocks) = template.alert {
            for block in blocks {
                let locale = block.locale.description
                locales.append(locale)
                texts[locale] = ["title": block.title, "subtitle": block.subtitle, "body": block.body]
                    .compactMapValues(\.self)
            }
        }
        var rest = template
        rest.name = ""
        rest.custom = []
        if !locales.isEmpty { rest.alert = nil }
        settings = try WrittenKeys.values(of: rest)
        for member in template.custom { settings["custom.\(member.key)"] = try WrittenKeys.bytes(of: member.value) }
    }

    /// Returns the changes in the order of the new template, settings last.
    static func changes(
        from old: TemplateOutline, to new: TemplateOutline, variant: String?
    ) -> [RunDifference.Change] {
        var changes: [RunDifference.Change] = []
        for locale in new.locales + old.locales.filter({ new.texts[$0] == nil }) {
            changes += Self.changes(locale, old.texts[locale], new.texts[locale], variant)
        }
        for key in WrittenKeys.changed(old.settings, new.settings) {
            let kind: RunDifference.Change.Kind =
                old.settings[key] == nil ? .added : new.settings[key] == nil ? .removed : .changed
            changes.append(RunDifference.Change(variant: variant, locale: nil, key: key, kind: kind))
        }
        return changes
    }

    private static func changes(
        _ locale: String, _ old: [String: TemplateText]?, _ new: [String: TemplateText]?, _ variant: String?
    ) -> [RunDifference.Change] {
        guard let old else {
            return [RunDifference.Change(variant: variant, locale: locale, key: nil, kind: .added)]
        }
        guard let new else {
            return [RunDifference.Change(variant: variant, locale: locale, key: nil, kind: .removed)]
        }
        return ["title", "subtitle", "body"].filter { old[$0] != new[$0] }.map { key in
            RunDifference.Change(
                variant: variant, locale: locale, key: key,
                kind: old[key] == nil ? .added : new[key] == nil ? .removed : .changed)
        }
    }
}

/// Compares two campaign files key by key.
enum CampaignOutline {
    /// Returns the keys of the file whose values differ, in alphabetical order. The defaults of variables are left
    /// out, because the values of the runs are compared instead.
    static func changedKeys(_ old: Campaign, _ new: Campaign) throws -> [String] {
        WrittenKeys.changed(try values(old), try values(new)).map { fileKeys[$0] ?? $0 }.sorted()
    }

    /// The keys of the file whose property in the run's definition has another name.
    private static let fileKeys = [
        "name": "campaign", "feed": "trigger", "holdout_percent": "holdout",
        "max_attempts": "retry",
    ]

    private static func values(_ campaign: Campaign) throws -> [String: Data] {
        var campaign = campaign
        campaign.variables = [:]
        campaign.audience.source = ""
        return try WrittenKeys.values(of: campaign)
    }
}

/// The properties of a value by their keys in snake_case, each as the bytes of its JSON.
enum WrittenKeys {
    static func values(of value: some Encodable) throws -> [String: Data] {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let object = try JSONSerialization.jsonObject(with: try encoder.encode(value))
        guard let members = object as? [String: Any] else { return [:] }
        return try members.mapValues {
            try JSONSerialization.data(withJSONObject: $0, options: [.sortedKeys, .fragmentsAllowed])
        }
    }

    static func bytes(of value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(value)
    }

    static func changed(_ old: [String: Data], _ new: [String: Data]) -> [String] {
        Set(old.keys).union(new.keys).filter { old[$0] != new[$0] }.sorted()
    }
}
