import CampaignFiles
import Foundation
import Model
import Testing

/// The composer's form over the files that people write: nothing but the changed values changes.
struct ComposerRoundTripTests {
    /// A campaign and its template, with comments in every place that people use.
    private struct Pair: CustomStringConvertible, Sendable {
        var description: String
        var campaign: String
        var template: String
    }

    private static let dense = Pair(
        description: "dense",
        campaign: """
            # head
            campaign: "x"   # name
            topic: com.example.app
            push_type: alert
            template: x
            audience: segment("fans") and not tag("off")    # who
            variables: {show: 'It''s on', title: ""}   # defaults

            schedule:
                cron: 0 9 * * MON-FRI   # mornings
                zone: "Europe/Berlin"
                # not at night
                quiet_hours: {from: "22:00", to: "08:00", policy: defer}   # sleep
            expires_after: 4h
            guards: {min_reach: 1, max_reach: 10}
            # end
            """,
        template: """
            template: x
            default_locale: en
            alert:   # by language
              en: {title: "Hi {{show}}", body: "{{title}}"}   # first
              # German
              de:
                title: |-
                  Hallo
                  du
                body: >-   # folded
                  Eine
                  Zeile
              "no": {title: Hei, body: 'Det er ''ute'''}
            badge: +1 # adds
            custom:
              # the link
              link_url: https://example.com/a#b
              campaign: {id: 7}
            sound:
            # end without a line end
            """)

    private static let noGuards = Pair(
        description: "small", campaign: "campaign: y\ntopic: a.b\npush_type: alert\ntemplate: y\naudience: everyone\n",
        template: "template: y\nalert: {en: {body: \"x\"}}\n")

    private static func pairs() throws -> [Pair] {
        let examples = try ["new-podcast", "breaking-news"].map { name in
            let path = { (folder: String) in Files.project.appending(path: "\(folder)/\(name).yaml").path }
            return Pair(
                description: name, campaign: try Files.text(path("campaigns")),
                template: try Files.text(path("templates")))
        }
        let windows = examples.prefix(1).map {
            Pair(
                description: "CRLF", campaign: $0.campaign.replacing("\n", with: "\r\n"),
                template: $0.template.replacing("\n", with: "\r\n"))
        }
        return examples + windows + [dense, noGuards]
    }

    private static let texts = [
        "", "plain", "A \"quoted\" one", "it's", "{{title}} is out", "two\nlines", "  padded ", "#tag: a", "null",
        "yes",
        "7", "émoji 🎧", "a: b # c", "trailing\n", "tab\there", "\u{202E}rtl", "- item", "back\\slash", "*star", "%",
    ]

    private static func change(_ fields: ComposerFields, _ random: inout SeededGenerator) -> ComposerFields {
        var new = ComposerFields()
        let text = { (random: inout SeededGenerator) in texts.randomElement(using: &random) ?? "" }
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let locale = ["en", "de", "pt-BR", "no", "ar"].randomElement(using: &random) ?? "en"
            let part = ComposerFields.textParts.randomElement(using: &random) ?? "title"
            switch Int.random(in: 0..<14, using: &random) {
            case 0, 1, 2: new["alert.\(locale).\(part)"] = text(&random)
            case 3: new["variables.\(["show", "title", "extra"].randomElement(using: &random) ?? "")"] = text(&random)
            case 4: new["badge"] = ["", "+1", "7"].randomElement(using: &random) ?? ""
            case 5: new["sound"] = ["", "default", "ping.caf"].randomElement(using: &random) ?? ""
            case 6: new["category"] = text(&random)
            case 7: new["link"] = ["", "https://example.com/{{title}}?a=b&c#d"].randomElement(using: &random) ?? ""
            case 8: new["image"] = ["", "https://example.com/i.png"].randomElement(using: &random) ?? ""
            case 9:
                new["expires_after"] = ["", "1h", "30m"].randomElement(using: &random) ?? ""
                new["guards.max_reach"] = ["", "500"].randomElement(using: &random) ?? ""
            case 10:
                for (name, value) in [
                    ("who", "choose"), ("who.segment.fans", ["", "in", "out"].randomElement(using: &random) ?? ""),
                    ("who.tag.a \"b\" \\", "out"), ("who.seen", ["", "90"].randomElement(using: &random) ?? ""),
                    ("who.locale.de", ["", "on"].randomElement(using: &random) ?? ""),
                ] { new[name] = value }
            case 11:
                for (name, value) in [
                    ("start", "once"), ("at.date", "2026-12-01"), ("at.time", "09:00"), ("zone", "Europe/Berlin"),
                ] { new[name] = value }
            case 12:
                for (name, value) in [
                    ("start", "repeat"), ("repeat.cron", ""), ("repeat.time", "08:30"), ("repeat.MON", "on"),
                    ("repeat.SUN", ["", "on"].randomElement(using: &random) ?? ""), ("zone", "recipient"),
                ] { new[name] = value }
            default:
                new["start"] = "hand"
                new["quiet.from"] = ["", "23:00"].randomElement(using: &random) ?? ""
                new["quiet.to"] = new["quiet.from"].isEmpty ? "" : "07:00"
            }
        }
        return new
    }

    /// The form writes back what it shows, so it must show the days on which the campaign starts.
    @Test func `the form reads each range of weekdays as the schedule does`() throws {
        let ends = (0...7).map { "\($0)" } + ["MON", "WED", "SAT", "SUN"]
        let monday = CivilDay(year: 2026, month: 11, day: 30)
        for field in ends + ends.flatMap({ first in ends.map { "\(first)-\($0)" } }) + ["1,SAT-SUN", "0-7,3"] {
            let cron = try CronExpression("0 9 * * \(field)")
            let files = ComposedFiles(
                campaign: Self.noGuards.campaign + "schedule: {cron: \"0 9 * * \(field)\", zone: UTC}\n",
                template: Self.noGuards.template)
            var fields = files.fields
            guard fields["repeat.cron"].isEmpty else { continue }
            fields["repeat.time"] = "10:00"
            let edited = try files.edited(fields).campaign
            let schedule = try #require(CampaignFile.read(text: edited, path: "c.yaml").0?.schedule)
            guard case .cron(let text) = schedule.trigger else { continue }
            let written = try CronExpression(text)
            for day in (0..<7).map({ CivilDay(number: monday.number + $0) }) {
                #expect(written.includes(day) == cron.includes(day), "\(field) became \(text)")
            }
        }
    }

    @Test func `an unchanged form changes nothing`() throws {
        for pair in try Self.pairs() {
            let files = ComposedFiles(campaign: pair.campaign, template: pair.template)
            #expect(files.obstacle == nil, "\(pair): \(files.obstacle ?? "")")
            let edited = try files.edited(files.fields)
            #expect(edited.campaign == pair.campaign && edited.template == pair.template, "\(pair)")
        }
    }

    @Test func `600 edits change only the values that they name, and no comment goes`() throws {
        var random = SeededGenerator(seed: 31)
        var (changes, lines) = (0, 0)
        for round in 0..<120 {
            for pair in try Self.pairs() {
                let files = ComposedFiles(campaign: pair.campaign, template: pair.template)
                let change = Self.change(files.fields, &random)
                let edited = try files.edited(change)
                let again = ComposedFiles(campaign: edited.campaign, template: edited.template)
                let what: Comment = "round \(round), \(pair): \(change.values)\n\(edited.campaign)\n\(edited.template)"
                try #require(again.obstacle == nil, what)
                try Self.requireValues(files, change, again, what)
                // The second save of the same form has nothing to do.
                let twice = try again.edited(change)
                #expect(twice.campaign == edited.campaign && twice.template == edited.template, what)
                for (before, after) in [(pair.campaign, edited.campaign), (pair.template, edited.template)] {
                    changes += before == after ? 0 : 1
                    lines += try Self.requireOldLines(before, after, change, what)
                }
            }
        }
        #expect(changes > 450 && lines > 0)
    }

    /// Each named value is as the form has it, and each other one is as before. Groups that follow another field, such as
    /// the time of a start by hand, are left out.
    private static func requireValues(
        _ before: ComposedFiles, _ change: ComposerFields, _ after: ComposedFiles, _ what: Comment
    ) throws {
        let groups = ["who", "start", "at.", "repeat.", "zone", "unknown_zone", "quiet.", "variables."]
        let names = Set(before.fields.values.keys).union(after.fields.values.keys).union(change.values.keys)
        for name in names where !groups.contains(where: name.hasPrefix) {
            let wanted = change.values[name] ?? before.fields[name]
            #expect(after.fields[name] == wanted, "\(name)\n\(what)")
        }
        for (name, value) in change.values where name.hasPrefix("variables.") || name == "start" {
            #expect(after.fields[name] == value, "\(name)\n\(what)")
        }
    }

    /// Comments stay unless the line of a removed value goes, and the other lines are those of before, in their order.
    private static func requireOldLines(
        _ before: String, _ after: String, _ change: ComposerFields, _ what: Comment
    ) throws -> Int {
        let (old, new) = (before.split(whereSeparator: \.isNewline), after.split(whereSeparator: \.isNewline))
        let difference = new.difference(from: old)
        let gone = difference.removals.compactMap { removal -> Substring? in
            if case .remove(_, let line, _) = removal { line } else { nil }
        }
        let own = gone.filter { $0.trimmingCharacters(in: .whitespacesAndNewlines).hasPrefix("#") }
        #expect(own.isEmpty, "\(own)\n\(what)")
        // A value has at most some lines. The most are an audience and a schedule.
        #expect(gone.count <= 6 * change.values.count, what)
        return gone.count
    }

    @Test func `a file that the form cannot show says why`() {
        let template = "template: y\nalert: {loc_key: A}\n"
        let small = Self.noGuards
        #expect(ComposedFiles(campaign: small.campaign, template: template).obstacle?.contains("loc_key") == true)
        let silent = small.campaign.replacing("push_type: alert", with: "push_type: background")
        #expect(ComposedFiles(campaign: silent, template: small.template).obstacle?.contains("background") == true)
        #expect(ComposedFiles(campaign: "a: [", template: small.template).obstacle?.contains("campaign") == true)
    }

    @Test func `a value behind an alias is refused, and the text stays`() throws {
        var text = YAMLText("template: y\nalert:\n  en: &e {title: A}\n  de: *e\n")
        let before = text.text
        #expect(throws: YAMLText.Fault.unsuitable(path: "alert.en.title")) {
            try text.apply([.init(["alert", "en", "title"], .text("B"))])
        }
        #expect(text.text == before)
    }

    @Test func `an edit reads as a person would write it`() throws {
        let files = ComposedFiles(campaign: Self.noGuards.campaign, template: Self.noGuards.template)
        let edited = try files.edited(
            ComposerFields([
                "alert.de.title": "Neu", "alert.de.body": "{{title}} ist da.", "badge": "+1", "start": "repeat",
                "repeat.time": "09:00", "repeat.MON": "on", "repeat.TUE": "on", "repeat.WED": "on", "zone": "recipient",
                "who": "choose", "who.segment.fans": "in", "who.locale.de": "on", "who.seen": "30",
                "quiet.from": "22:00", "quiet.to": "08:00",
            ]))
        #expect(
            edited.campaign == """
                campaign: y
                topic: a.b
                push_type: alert
                template: y
                audience: >-
                  segment("fans")
                  and locale in ("de")
                  and last_seen within 30 days
                variables:
                  title: ""
                schedule:
                  cron: "0 9 * * MON-WED"
                  zone: recipient
                  unknown_zone: drop
                  quiet_hours:
                    from: "22:00"
                    to: "08:00"

                """)
        #expect(
            edited.template == """
                template: y
                alert: {en: {body: "x"}, de: {title: "Neu", body: "{{title}} ist da."}}
                badge: +1

                """)
    }
}
