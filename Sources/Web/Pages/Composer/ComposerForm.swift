import CampaignFiles
import Campaigns
import Foundation
import Model

/// The composer: a campaign's message, audience and time as a form.
struct ComposerForm: Sendable {
    struct Language: Sendable {
        var tag: String
        var name: String
        var isDefault: Bool
        /// Whether the fields are shown at once: for the default language, and for one that is new.
        var isOpen: Bool
        var title: String
        var subtitle: String
        var body: String
        /// Whether the language can be removed: it is not the only one.
        var mayRemove: Bool
    }

    /// A value that a device can have, to choose or not.
    struct Choice: Sendable {
        /// The name of the form's field.
        var field: String
        var label: String
        /// The number of devices, or an attribute's value. `nil` if it is not known.
        var devices: String?
        var isOn = false
        var isIn = false
        var isOut = false
    }

    struct Variable: Sendable {
        var name: String
        var value: String
        var rows: Int
        /// The item's field from which a feed fills the variable.
        var sources: [CampaignPage.Option]
        /// Whether no text uses the variable, so that it can be removed.
        var isUnused: Bool
    }

    var address: String
    var campaignTag: String
    var templateTag: String
    /// The fields of the saved files, for ``ComposerConflict``.
    var opened: String
    var conflict: ComposerConflict?
    var isUnsaved = false
    var isSaved = false
    /// The template of the texts, and the other campaigns that use it. `nil` if no other campaign does.
    var shared: SharedTemplate?
    /// The problems of the two files, errors first.
    var troubles: [FileEditor.Trouble] = []
    var summary = "no problem"
    var isWrong = false
    /// Whether a save would be refused.
    var isRefused = false
    var languages: [Language] = []
    /// The languages of devices that no text fits, as a sentence. `nil` if there is none.
    var missing: String?
    /// The languages to add.
    var offered: [Choice] = []
    var defaults: [CampaignPage.Option] = []
    var variables: [Variable] = []
    var link: String
    var image: String
    var sound: String
    var badge: String
    var category: String
    var thread: String
    var levels: [CampaignPage.Option] = []
    var isForEveryone: Bool
    var isChosen: Bool
    var isExpression: Bool
    /// Whether the audience is a query that only the file shows.
    var isQuery: Bool
    var expression: String
    var segments: [Choice] = []
    var locales: [Choice] = []
    var tags: [Choice] = []
    var attributes: [Choice] = []
    var countries: String
    var version: String
    var versions: [String] = []
    var seen: String
    var startsByHand: Bool
    var startsOnce: Bool
    var repeats: Bool
    var followsFeed: Bool
    var date: String
    var time: String
    var repeatTime: String
    var days: [Choice] = []
    /// A repetition that the fields for days and time cannot show. `nil` if they can.
    var cron: String?
    /// The time zone. `nil` for each device's own clock, and if the file names none.
    var clockZone: String?
    var isByDevice: Bool
    var unknownZone: String
    var zones: [String] = []
    var lateBy: String
    var quietFrom: String
    var hasQuietHours: Bool
    var quietTo: String
    var isDropped: Bool
    var feed: String
    var feedEvery: String
    var expiresAfter: String
    /// The most and the fewest devices of a send, as texts.
    var reachMax: String
    var reachMin: String
    var nexts: [CampaignPage.Next] = []
    /// The keys that only the files show, as a list. `nil` if there is none.
    var keysBeyond: String?

    init(_ files: ComposedFiles, _ fields: ComposerFields, address: String, campaignTag: String, templateTag: String) {
        self.address = address
        self.campaignTag = campaignTag
        self.templateTag = templateTag
        opened = ComposerConflict.text(of: files.fields)
        (link, image, sound) = (fields["link"], fields["image"], fields["sound"])
        (badge, category, thread) = (fields["badge"], fields["category"], fields["thread_id"])
        (isForEveryone, isChosen) = (fields["who"] == "everyone", fields["who"] == "choose")
        (isExpression, isQuery) = (fields["who"] == "expression", fields["who"] == "sql")
        expression = isQuery ? "" : fields["who.expression"]
        (countries, version, seen) = (fields["who.countries"], fields["who.version"], fields["who.seen"])
        let start = fields["start"]
        (startsByHand, startsOnce) = (!["once", "repeat", "feed"].contains(start), start == "once")
        (repeats, followsFeed) = (start == "repeat", start == "feed")
        (date, time) = (fields["at.date"], fields["at.time"])
        repeatTime = fields["repeat.time"]
        cron = fields["repeat.cron"].isEmpty ? nil : fields["repeat.cron"]
        isByDevice = fields["zone"] == "recipient"
        clockZone = isByDevice || fields["zone"].isEmpty ? nil : fields["zone"]
        (reachMax, reachMin) = (fields["guards.max_reach"], fields["guards.min_reach"])
        (unknownZone, lateBy) = (fields["unknown_zone"], fields["late_by_max"])
        (quietFrom, quietTo) = (fields["quiet.from"], fields["quiet.to"])
        hasQuietHours = !quietFrom.isEmpty
        isDropped = fields["quiet.policy"] == "drop"
        (feed, feedEvery, expiresAfter) = (fields["feed"], fields["feed.every"], fields["expires_after"])
        keysBeyond = files.keysBeyond.isEmpty ? nil : files.keysBeyond.joined(separator: ", ")
        days = zip(ComposerFields.weekdays, Self.weekdayNames).map { day, name in
            Choice(field: "repeat.\(day)", label: name, isOn: fields["repeat.\(day)"] == "on")
        }
        levels = .init(
            ["", "passive", "active", "time-sensitive", "critical"], chosen: fields["interruption_level"])
        putLanguages(files, fields)
        putVariables(files, fields)
        zones = ["UTC"] + TimeZone.knownTimeZoneIdentifiers.filter { !["GMT", "UTC"].contains($0) }
    }

    private static let weekdayNames = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    /// Returns the English name of a language, such as `Portuguese (Brazil)`.
    static func name(of tag: String) -> String {
        LocaleTag(tag).map(EnglishNames.language) ?? tag
    }

    private mutating func putLanguages(_ files: ComposedFiles, _ fields: ComposerFields) {
        let new = fields.languages.subtracting(files.languages)
        let tags = (files.languages + new.sorted()).filter(fields.languages.contains)
        let usual = fields["default_locale"].isEmpty ? tags.first ?? "" : fields["default_locale"]
        languages = tags.map { tag in
            Language(
                tag: tag, name: Self.name(of: tag), isDefault: tag == usual, isOpen: tag == usual || new.contains(tag),
                title: fields["alert.\(tag).title"],
                subtitle: fields["alert.\(tag).subtitle"], body: fields["alert.\(tag).body"],
                mayRemove: tags.count > 1 && tag != usual)
        }
        defaults = .init(tags, chosen: usual)
    }

    private mutating func putVariables(_ files: ComposedFiles, _ fields: ComposerFields) {
        let names = fields.names(behind: "variables.")
        let known = Set(files.variables)
        let order = files.variables + names.filter { !known.contains($0) }
        let sources = [""] + FeedField.allCases.map(\.rawValue)
        variables = order.map { name in
            let value = fields["variables.\(name)"]
            let source = fields["feed.variables.\(name)"]
            return Variable(
                name: name, value: value, rows: min(value.plainLines.count, CampaignPage.Variable.rowsMax),
                sources: .init(sources, chosen: source), isUnused: known.contains(name) && !files.uses(name))
        }
    }

    /// Returns the identifier of a field on the page, such as `c-alert-de-title`.
    static func id(_ field: String) -> String { "c-" + field.replacing(".", with: "-") }

    /// Keeps what the visitor opened, so that a save finds out whether another person has changed a file since.
    mutating func keepOpened(_ form: [String: String]) {
        campaignTag = form["etag.campaign", default: campaignTag]
        templateTag = form["etag.template", default: templateTag]
        opened = form["opened", default: opened]
    }

    /// Shows the problems of the two files.
    mutating func show(_ found: [FileEditor.Trouble]) {
        troubles = found.errorsFirst
        isWrong = found.errors > 0
        isRefused = found.contains(where: \.isObstacle)
        summary = found.summary
    }

    /// Adds the errors that refused a save, if the form does not show them yet.
    mutating func list(_ diagnostics: [Diagnostic]) { show(troubles.with(diagnostics)) }

    /// Adds the values to choose from: those of the devices, of the segments, and of the files.
    mutating func offer(_ values: AudienceValuesResult, segments names: [String], _ fields: ComposerFields) {
        let choices = AudienceChoices(values, segments: names, fields)
        (segments, tags, locales) = (choices.segments, choices.tags, choices.locales)
        (attributes, versions) = (choices.attributes, choices.versions)
        let written = written
        let others = values.locales.filter { !Self.hasText(for: $0.name, in: written) }
        let named = others.prefix(8).map { "\(Self.name(of: $0.name)) (\($0.devices.counted("device")))" }
        missing =
            others.isEmpty
            ? nil
            : "Of all devices of the app, without a text: \(named.joined(separator: ", "))\(others.count > 8 ? " and others" : "")."
        offered = others.map { .init(field: $0.name, label: Self.name(of: $0.name), devices: $0.devices.grouped) }
    }

    /// A template with the form's languages, and no texts.
    private var written: Template {
        var template = Template(name: "")
        template.alert = .localized(
            languages.compactMap { language in
                LocaleTag(language.tag).map { .init(locale: $0, title: nil, subtitle: nil, body: nil) }
            })
        return template
    }

    /// Whether a device in a language gets a text in it, and not the usual one.
    private static func hasText(for locale: String, in template: Template) -> Bool {
        guard let tag = LocaleTag(locale) else { return true }
        return template.localeChoice(for: tag).map { $0.fit != .fallback } ?? false
    }
}
