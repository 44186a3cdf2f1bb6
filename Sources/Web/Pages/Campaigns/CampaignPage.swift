import Campaigns
import Foundation
import Model

/// The list of campaigns.
struct CampaignList: Sendable {
    struct Row: Sendable {
        var name: String
        var address: String
        var topic: String
        var kind: String
        var template: String
        /// `nil` if the campaign names no template.
        var templateAddress: String?
        /// The state, such as `ok` or `2 errors`.
        var state: String
        var mark: String
        var starts: String
        var next: String?
        var lastRun: CampaignPage.LastRun?
    }

    var rows: [Row]
    var isEmpty: Bool
    var folder: String
    /// Whether the visitor may create files.
    var mayMake: Bool
    /// Whether the visitor could write campaigns if the configuration allowed it.
    var isOff = false
}

extension CampaignList.Row {
    init(_ campaign: CampaignResult) {
        name = campaign.name
        address = CampaignPage.address(campaign.name)
        topic = campaign.topic ?? ""
        kind = [campaign.pushType, campaign.priority.map { "priority \($0)" }].compactMap(\.self).joined(
            separator: ", ")
        template = campaign.template ?? ""
        templateAddress = campaign.template.map(TemplatePage.address)
        state =
            campaign.errors + campaign.warnings == 0
            ? "ok" : FileEditor.summary(errors: campaign.errors, warnings: campaign.warnings)
        mark = campaign.errors > 0 ? "failed" : campaign.warnings > 0 ? "paused" : "finished"
        starts = CampaignPage.summary(startedBy: campaign.startedBy)
        next = campaign.nextOccurrences.first.map { CampaignPage.Next($0).when }
        lastRun = campaign.lastRun.map(CampaignPage.LastRun.init)
    }
}

/// A campaign's page for its author: the texts with their problems, the screens of phones, and the steps to a run.
struct CampaignPage: Sendable {
    /// A text that waits for release.
    struct Waiting: Sendable {
        var address: String
        var summary: String
    }

    struct Next: Sendable {
        var when: String
        /// The reason why the run will fail, and the effect of a clock change on the time.
        var note: String?
        /// The page where a person gives the start its values; `nil` if the campaign has no variables to give.
        var address: String?
        /// The link's words: what the page is for.
        var label = ""
    }

    struct LastRun: Sendable {
        var run: Int64
        var state: String
        var when: String
        var reach: String
    }

    /// The input field of a variable.
    struct Variable: Sendable {
        var name: String
        var value: String
        var placeholder: String
        /// The rows of the field: one for each line of the value, up to ``rowsMax``.
        var rows: Int

        static let rowsMax = 6

        /// Returns a field for each variable, by name.
        ///
        /// - Parameters:
        ///   - defaults: the values of the campaign's file.
        ///   - shown: the value of the field. `nil` for the default.
        static func all(_ defaults: [String: String], _ shown: (_ name: String) -> String?) -> [Variable] {
            defaults.sorted { $0.key < $1.key }.map { name, value in
                let text = shown(name) ?? value
                return Variable(
                    name: name, value: text, placeholder: value.isEmpty ? "has no default" : "default: \(value)",
                    rows: min(text.plainLines.count, rowsMax))
            }
        }
    }

    struct Option: Sendable {
        var name: String
        var isChosen: Bool
    }

    /// The input of the form below the texts.
    struct Input: Sendable {
        var variables: [String: String] = [:]
        var device = ""
        var variant = ""
        /// Whether to plan as if the run started now.
        var isNow = false
        /// The start of the schedule that the values are for; empty for the next one.
        var occurrence = ""

        init(_ fields: [String: String] = [:]) {
            for (name, value) in fields where name.hasPrefix("v.") {
                // Browsers end lines with CRLF.
                variables[String(name.dropFirst(2))] = value.replacing("\r\n", with: "\n")
            }
            device = fields["device", default: ""].trimmingCharacters(in: .whitespaces)
            variant = fields["variant", default: ""]
            isNow = fields["when"] == "now"
            occurrence = fields["occurrence", default: ""]
        }

        /// The values of variables alone.
        init(variables: [String: String]) {
            self.variables = variables
        }

        /// The input as the query of an address; empty without input.
        var query: String {
            let values = variables.sorted { $0.key < $1.key }.map { (name: "v.\($0.key)", value: $0.value) }
            let others = [("device", device), ("variant", variant), ("when", isNow ? "now" : "")]
            return PageRequest.query((values + others).filter { !$0.value.isEmpty })
        }
    }

    var name: String
    var address: String
    /// The address of the button that stops all runs of the campaign immediately, without a question. `nil` if the
    /// visitor may not stop them.
    var stopAddress: String?
    var facts: [PlanView.Fact]
    var state: String
    var mark: String
    var starts: String
    var nexts: [Next]
    var lastRun: LastRun?
    /// The opens and goals of the last runs, as a chart. `nil` if there are none.
    var responses: PageHTML?
    /// The reasons why the request was refused, one per line.
    var problem: [String]
    var files: [FileEditor]
    /// The texts of the campaign's files that wait for release.
    var changes: [Waiting]
    var phones: [PhoneScreen]
    /// The reason why there are no screens, or why they show the saved text.
    var phonesReason: String?
    var variables: [Variable]
    var device: String
    var variants: [Option]
    var hasVariants: Bool
    var hasSchedule: Bool
    var isNow: Bool
    var mayPlan: Bool
    var mayTest: Bool
    /// The names of devices in the configuration.
    var testDevices: [String] = []
    /// The address of the campaign's plans.
    var plansAddress: String
    var test: TestState?
    /// The form. `nil` if the page shows the files.
    var composer: ComposerForm?
    /// The reason why the page shows the files and not the form.
    var filesReason: String?
    /// Whether the visitor may change the files, and so choose between the form and the files.
    var mayEdit = false
    /// The address of the page with the form, and with the values that were typed.
    var formAddress = ""
    /// The address of the page with the files, and with the values that were typed.
    var filesAddress = ""

    /// Returns the address of a campaign's page. The name is encoded, because it may contain any character.
    static func address(_ name: String) -> String { "/campaigns/" + name.inAddress }

    /// Returns the address of a campaign's page with the input of its form. An input that is too long for an address is
    /// left out.
    static func address(_ name: String, _ input: Input, and more: String = "") -> String {
        let query = [input.query, more].filter { !$0.isEmpty }.joined(separator: "&")
        let full = query.isEmpty ? address(name) : "\(address(name))?\(query)"
        guard full.utf8.count > PageRequest.addressBytesMax / 2, !more.isEmpty else { return full }
        return "\(address(name))?\(more)"
    }

    static func summary(startedBy how: String?) -> String {
        switch how {
        case "schedule": "by its schedule"
        case "feed": "by its feed"
        case "hand": "by hand"
        default: ""
        }
    }
}

extension CampaignPage.Next {
    /// - Parameter file: the name of the campaign's file, if it differs from the campaign's.
    init(_ entry: ScheduleResult.Entry, file: String? = nil) {
        let wall = entry.occurrence.replacing("T", with: " ")
        if entry.byEachClock {
            when = "\(wall) by each device's clock"
        } else {
            when = "\(wall) in \(entry.zone)"
        }
        let notes = [entry.failure, entry.clockChanges.map { ClockSummary.summary($0, at: entry) }].compactMap(\.self)
        note = notes.isEmpty ? nil : notes.joined(separator: "; ")
        address = NextStartPage.address(file ?? entry.campaign, entry.occurrence)
        label = entry.missingValues != nil ? "Give values" : entry.values == nil ? "Its values" : "Its own values"
    }
}

/// Describes the effect of a clock change on a time.
enum ClockSummary {
    static func summary(_ changes: [ScheduleResult.ClockChangeEntry], at entry: ScheduleResult.Entry) -> String {
        changes.map { change in
            switch change.kind {
            case "skipped":
                "in \(change.zone) the clocks skip its time: the run starts at \(time(change.startsAtLocal))"
            default: "in \(change.zone) the clocks show its time twice: the run starts the first time"
            }
        }.joined(separator: "; ")
    }

    /// Returns `09:00` for `2026-12-01T09:00`.
    static func time(_ wall: String) -> String { wall.split(separator: "T").last.map(String.init) ?? wall }
}

extension CampaignPage.LastRun {
    init(_ result: RunResult) {
        run = result.run
        state = result.state
        when = (result.finishedAt ?? result.startedAt ?? result.createdAt).shownTimeAndZone
        reach = "\(result.counts.accepted.grouped) of \(result.counts.audience.grouped) accepted"
    }
}
