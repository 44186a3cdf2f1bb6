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
        /// `ok`, `2 errors`.
        var state: String
        var mark: String
        var starts: String
        var next: String?
        var lastRun: CampaignPage.LastRun?
    }

    var rows: [Row]
    var isEmpty: Bool
    var folder: String
    /// Whoever looks may make new files here.
    var mayMake: Bool
}

extension CampaignList.Row {
    init(_ campaign: CampaignResult) {
        name = campaign.name
        address = CampaignPage.address(campaign.name)
        topic = campaign.topic ?? ""
        kind = [campaign.pushType, campaign.priority.map { "priority \($0)" }].compactMap(\.self).joined(
            separator: ", ")
        template = campaign.template ?? ""
        state =
            campaign.errors + campaign.warnings == 0
            ? "ok" : FileEditor.words(errors: campaign.errors, warnings: campaign.warnings)
        mark = campaign.errors > 0 ? "failed" : campaign.warnings > 0 ? "paused" : "finished"
        starts = CampaignPage.words(startedBy: campaign.startedBy)
        next = campaign.nextOccurrences.first.map { CampaignPage.Next($0).when }
        lastRun = campaign.lastRun.map(CampaignPage.LastRun.init)
    }
}

/// A campaign where its author lives: its texts with what is wrong in them, what phones show, and the way to a run.
struct CampaignPage: Sendable {
    /// A text that waits for release.
    struct Waiting: Sendable {
        var address: String
        var words: String
    }

    struct Next: Sendable {
        var when: String
        /// What the clocks do to it.
        var note: String?
    }

    struct LastRun: Sendable {
        var run: Int64
        var state: String
        var when: String
        var reach: String
    }

    /// A variable's field.
    struct Variable: Sendable {
        var name: String
        var value: String
        var placeholder: String
        /// One for each line of the value, up to ``rowsMax``.
        var rows: Int

        static let rowsMax = 6
    }

    struct Option: Sendable {
        var name: String
        var isChosen: Bool
    }

    struct Test: Sendable {
        var run: Int64
        var words: String
        var mark: String
        var isWaiting: Bool
    }

    /// What was typed into the form below the texts.
    struct Input: Sendable {
        var variables: [String: String] = [:]
        var device = ""
        var variant = ""
        /// Planned as if started now.
        var isNow = false

        init(_ fields: [String: String] = [:]) {
            for (name, value) in fields where name.hasPrefix("v.") {
                // Browsers end lines as on paper tape.
                variables[String(name.dropFirst(2))] = value.replacing("\r\n", with: "\n")
            }
            device = fields["device", default: ""].trimmingCharacters(in: .whitespaces)
            variant = fields["variant", default: ""]
            isNow = fields["when"] == "now"
        }
    }

    var name: String
    var address: String
    /// Of the button that stops all its runs and asks nothing; nil: not by whoever looks.
    var stopAddress: String?
    var facts: [PlanView.Fact]
    var state: String
    var mark: String
    var starts: String
    var nexts: [Next]
    var lastRun: LastRun?
    /// Why what was asked for was not done, in lines.
    var problem: [String]
    var files: [FileEditor]
    /// Texts of its files that wait for release.
    var changes: [Waiting]
    var phones: [PhoneScreen]
    /// Why there are none.
    var phonesReason: String?
    var variables: [Variable]
    var device: String
    var variants: [Option]
    var hasVariants: Bool
    var hasSchedule: Bool
    var isNow: Bool
    var mayPlan: Bool
    var mayTest: Bool
    var plan: PlanView?
    var test: Test?

    /// Of a page about a campaign: names may have anything in them.
    static func address(_ name: String) -> String { "/campaigns/" + name.inAddress }

    static func words(startedBy how: String?) -> String {
        switch how {
        case "schedule": "by its schedule"
        case "feed": "by its feed"
        case "hand": "by hand"
        default: ""
        }
    }
}

extension CharacterSet {
    /// What stands in one part of a path as it is.
    fileprivate static let urlPathComponent = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
}

extension CampaignPage.Next {
    init(_ entry: ScheduleResult.Entry) {
        let wall = entry.occurrence.replacing("T", with: " ")
        if entry.byEachClock {
            when = "\(wall) by each device's clock"
        } else {
            when = "\(wall) in \(entry.zone)"
        }
        note = entry.clockChanges.map { ClockWords.words($0, at: entry) }
    }
}

/// What a change of the clocks does to a time, in words.
enum ClockWords {
    static func words(_ changes: [ScheduleResult.ClockChangeEntry], at entry: ScheduleResult.Entry) -> String {
        changes.map { change in
            switch change.kind {
            case "skipped":
                "in \(change.zone) the clocks leave its time out: it goes at \(time(change.startsAtLocal))"
            default: "in \(change.zone) the clocks show its time twice: it goes the first time"
            }
        }.joined(separator: "; ")
    }

    /// `09:00` of `2026-12-01T09:00`.
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

extension CampaignPage.Test {
    /// - Parameter result: nil: nothing is known of it yet.
    init(_ test: Run, _ result: TestResult?) {
        run = test.id
        let who = result.map { " to \($0.installationId ?? $0.token)" } ?? ""
        let answer = [result?.status.map(String.init), result?.reason].compactMap(\.self).joined(separator: " ")
        let state = result?.state ?? "pending"
        isWaiting = state == "pending" && !test.state.isFinal
        words =
            "test \(test.id)\(who): "
            + (isWaiting ? "waits for the daemon to send it" : state + (answer.isEmpty ? "" : " (\(answer))"))
        mark = state
    }
}
