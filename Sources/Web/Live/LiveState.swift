import Campaigns
import Foundation
import Model

/// All values that a live page shows, in the form in which its script inserts them. Each message is complete, so a lost
/// one does no harm.
struct LiveState: Codable, Hashable, Sendable {
    /// The stage that the page was rendered for. The page reloads if it differs.
    var stage: String
    /// The texts, by the name of their place.
    var values: [String: String]
    /// The progress from 0 to 1, by the name of its place.
    var progress: [String: Double]
    /// The parts of the page that are more than a text, in HTML, by the name of their place.
    var parts: [String: String] = [:]
    /// A sentence for screen readers, announced at most every 10 s.
    var announcement: String
    /// Whether nothing changes any more.
    var isOver: Bool

    /// The state without the parts that the page shows already.
    func without(_ shown: [String: String]) -> LiveState {
        var state = self
        state.parts = parts.filter { shown[$0.key] != $0.value }
        return state
    }
}

/// The rates of runs, computed from samples of the last 10 s. This span is long enough to avoid jumps and short enough
/// to follow changes.
struct RunRates: Sendable {
    private static let span: Duration = .seconds(10)

    private struct Look: Sendable {
        var sent: Int
        var at: Duration
    }

    private var looks: [Int64: [Look]] = [:]

    /// Returns the number of deliveries sent per second, or `nil` after a single sample.
    ///
    /// - Parameter sent: the settled deliveries that are not suppressed.
    mutating func rate(of run: Int64, sent: Int, at now: Duration) -> Double? {
        var own = looks[run, default: []].filter { now - $0.at <= Self.span && $0.sent <= sent }
        own.append(Look(sent: sent, at: now))
        looks[run] = own
        guard let first = own.first, now > first.at else { return nil }
        return Double(sent - first.sent) / (now - first.at).inSeconds
    }

    /// Forgets the runs that were not sampled since this time.
    mutating func forget(before moment: Duration) {
        looks = looks.filter { $0.value.last.map { $0.at >= moment } ?? false }
    }
}

/// A run as its page and the list show it. Both use the same words, as do the live messages.
struct RunView: Sendable {
    /// One state of deliveries, with their count.
    struct Part: Sendable {
        /// The name of the state, which is also its CSS class.
        var name: String
        var count: String
        var share: String
        /// The address of the list of its devices. `nil` if there are none, or if they change while the page is open.
        var address: String?
    }

    struct Stage: Sendable {
        var number: Int
        var members: String
        var state: String
        var devices: String
        var summary: String
    }

    var run: Int64
    var campaign: String
    var occurrence: String
    var state: String
    /// The state and its cause, in words.
    var summary: String
    /// Identifies this state, see ``RunResult/stateTag``.
    var stateTag: String
    var isTest: Bool
    var audience: String
    var settled: String
    var left: String
    var unknown: String
    /// The accepted part of the audience, such as `97.4 %`. Empty before the first response.
    var acceptedShare: String
    /// The opened part of the accepted pushes, such as `12.3 %`. Empty if no app reported an open, or if the page does
    /// not ask for it.
    var openedShare = ""
    /// The settled part of the audience, from 0 to 1.
    var progress: Double
    var percent: String
    /// The same in brackets. Empty while the audience has no devices.
    var share: String
    /// A pace such as `9,800/s, about 4 minutes left`. Empty if the run does not move.
    var pace: String
    var parts: [Part]
    /// The stages of a staged run, in order.
    var stages: [Stage]
    /// What the remaining deliveries wait for, or why the run does not continue.
    var waits: [String]
    /// The first words of the run, if phones show any and the page asks for them.
    var excerpt: String?
    /// The push type, unless it is the usual one.
    var kind: String?
    var createdAt: PageHTML
    var startedAt: PageHTML?
    var finishedAt: PageHTML?
    /// The process that sends the run.
    var process: String?
    var isOver: Bool
    /// Whether the run finished without success.
    var isUnsuccessful: Bool
    var awaitsApproval: Bool
    /// The variants of which a person must choose one for the rest. Empty if there is no choice.
    var choices: [String]
    private var counts: CountsResult
    private var isFrozen: Bool

    /// - Parameter isStopped: whether a stop is in force for the run.
    init(_ result: RunResult, rate: Double?, waits: [String] = [], isStopped: Bool = false) {
        let counts = result.counts
        self.counts = counts
        isFrozen = result.frozen
        let settled = counts.audience - counts.pending - counts.leased
        run = result.run
        campaign = result.campaign
        occurrence = result.occurrence
        state = result.state
        summary = result.stateSummary.onPage
        stateTag = result.stateTag
        isUnsuccessful = result.halt == RunHalt.unsuccessful.rawValue
        awaitsApproval = result.halt == RunHalt.approval.rawValue
        choices = result.stages?.lazy.compactMap(\.variants).first { $0.variant == nil }?.counts.map(\.name) ?? []
        isTest = result.test
        audience = counts.audience.grouped + (AudienceNote.mark(of: result).map { " \($0)" } ?? "")
        self.settled = settled.grouped
        left = (counts.pending + counts.leased).grouped
        unknown = counts.unknown.grouped
        acceptedShare = settled > 0 ? counts.accepted.share(of: counts.audience) : ""
        progress = counts.audience > 0 ? Double(settled) / Double(counts.audience) : 0
        percent = settled.share(of: counts.audience)
        share = percent.isEmpty ? "" : "(\(percent))"
        isOver = RunState(rawValue: result.state)?.isFinal ?? false
        let isMoving = result.state == RunState.running.rawValue && !isStopped
        pace = isMoving ? Self.pace(rate, left: counts.pending + counts.leased, isFrozen: result.frozen) : ""
        parts = Self.parts(result)
        self.waits = waits.map(\.onPage)
        stages = (result.stages ?? []).map {
            Stage(
                number: $0.stage, members: $0.members, state: $0.state, devices: $0.devices.grouped,
                summary: $0.summary.onPage)
        }
        createdAt = PageHTML(time: result.createdAt)
        startedAt = result.startedAt.map(PageHTML.init(time:))
        finishedAt = result.finishedAt.map(PageHTML.init(time:))
        process = result.process.map { process in
            process + (result.processState.flatMap { $0 == "running" ? nil : ", \($0)" } ?? "")
        }
    }

    private static func pace(_ rate: Double?, left: Int, isFrozen: Bool) -> String {
        guard let rate, rate >= 0.5 else { return "" }
        let speed = "\(Int(rate.rounded()).grouped)/s"
        guard isFrozen, left > 0 else { return speed }
        return "\(speed), about \(WrittenDuration.text(.seconds(Int64((Double(left) / rate).rounded(.up))))) remaining"
    }

    private static func parts(_ result: RunResult) -> [Part] {
        SumStates.all(result.counts).map { name, count in
            let isListed = count > 0 && name != "leased" && name != "pending"
            return Part(
                name: name, count: count.grouped, share: count.share(of: result.counts.audience),
                address: isListed ? "/runs/\(result.run)/deliveries?state=\(name)" : nil)
        }
    }

    /// The counts as a bar with its legend, in HTML.
    var sum: String {
        let empty =
            isFrozen
            ? "The audience is empty."
            : isOver ? "The run ended before its audience was counted." : "The audience is being counted."
        return Chart.closedSum(counts, empty: empty).picture
    }

    /// The stage for which a page is rendered.
    var stage: String { "\(state) \(summary)" }

    /// The values that the run's page shows, by place.
    var live: LiveState {
        var values = [
            "summary": summary, "audience": audience, "settled": settled, "left": left, "share": share,
            "pace": pace,
            "waits": waits.joined(separator: "\n"), "process": process ?? "",
        ]
        for part in parts {
            values["\(part.name).count"] = part.count
            values["\(part.name).share"] = part.share
        }
        for stage in stages {
            values["stage.\(stage.number).state"] = stage.state
            values["stage.\(stage.number).devices"] = stage.devices
            values["stage.\(stage.number).summary"] = stage.summary
        }
        return LiveState(
            stage: stage, values: values, progress: ["progress": progress], parts: ["sum": sum],
            announcement: percent.isEmpty
                ? "\(summary)."
                : "\(settled) of \(audience), \(percent)" + (pace.isEmpty ? "" : ", \(pace)") + ". \(summary).",
            isOver: isOver)
    }
}

extension [RunView] {
    /// The newest run of each campaign, if it finished without success. Test runs are left out.
    var unsuccessful: [RunView] {
        var seen: Set<String> = []
        return filter { !$0.isTest && seen.insert($0.campaign).inserted && $0.isUnsuccessful }
    }

    var stage: String { map { "\($0.run) \($0.state)" }.joined(separator: ",") }

    /// The values that the list shows, by place.
    var live: LiveState {
        var values: [String: String] = [:]
        var progress: [String: Double] = [:]
        for run in self {
            values["\(run.run).summary"] = run.summary
            values["\(run.run).settled"] = run.settled
            values["\(run.run).left"] = run.left
            values["\(run.run).unknown"] = run.unknown
            values["\(run.run).accepted"] = run.acceptedShare
            values["\(run.run).pace"] = run.pace
            values["\(run.run).audience"] = run.audience
            progress["\(run.run).progress"] = run.progress
        }
        let moving = filter { !$0.isOver }
        return LiveState(
            stage: stage, values: values, progress: progress,
            announcement: moving.isEmpty
                ? "no run is in progress"
                : moving.map { "\($0.campaign): \($0.percent.isEmpty ? $0.summary : $0.percent)" }
                    .joined(separator: ", "),
            // The list must show a run that begins later.
            isOver: false)
    }
}
