import Campaigns
import Foundation
import Model

/// The whole of what a page shows of something that moves, as its script puts it in place: each message stands for itself,
/// so that a lost one costs nothing.
struct LiveState: Codable, Hashable, Sendable {
    /// What the page was made for; another one means that it is to be asked for anew.
    var stage: String
    /// Texts by the name of their place.
    var values: [String: String]
    /// From 0 to 1, by the name of its place.
    var progress: [String: Double]
    /// A sentence for who listens to the page, said at most every 10 s.
    var announcement: String
    /// Nothing moves any more.
    var isOver: Bool
}

/// How fast runs go, from the looks at them: over the last seconds, so that it neither jumps nor lags.
struct RunRates: Sendable {
    private static let span: Duration = .seconds(10)

    private struct Look: Sendable {
        var settled: Int
        var at: Duration
    }

    private var looks: [Int64: [Look]] = [:]

    /// Deliveries settled in a second; nil: there was one look only.
    mutating func rate(of run: Int64, settled: Int, at now: Duration) -> Double? {
        var own = looks[run, default: []].filter { now - $0.at <= Self.span && $0.settled <= settled }
        own.append(Look(settled: settled, at: now))
        looks[run] = own
        guard let first = own.first, now > first.at else { return nil }
        return Double(settled - first.settled) / (now - first.at).inSeconds
    }

    /// Of runs that nobody has looked at since.
    mutating func forget(before moment: Duration) {
        looks = looks.filter { $0.value.last.map { $0.at >= moment } ?? false }
    }
}

/// A run as its page and the list show it: the same words in both, and in what is sent while it moves.
struct RunView: Sendable {
    /// One state that a delivery can be in.
    struct Part: Sendable {
        /// The state's word, which is its class, too.
        var name: String
        var count: String
        var share: String
        /// Its devices; nil where there are none, or where they change while one looks.
        var address: String?
    }

    struct Stage: Sendable {
        var number: Int
        var members: String
        var state: String
        var devices: String
        var words: String
    }

    var run: Int64
    var campaign: String
    var occurrence: String
    var state: String
    /// State and cause in words.
    var words: String
    var isTest: Bool
    var audience: String
    var settled: String
    var left: String
    var unknown: String
    /// Of the audience that is settled, from 0 to 1.
    var progress: Double
    var percent: String
    /// `9,800/s, about 4 minutes left`; empty where nothing moves.
    var pace: String
    var parts: [Part]
    /// Of a run that must prove itself, one after the other.
    var stages: [Stage]
    /// What the rest waits for, or why it does not go on.
    var waits: [String]
    var createdAt: String
    var startedAt: String?
    var finishedAt: String?
    /// The process that sends it.
    var process: String?
    var isOver: Bool
    /// Finished, and no success.
    var isUnsuccessful: Bool
    var awaitsApproval: Bool

    /// - Parameter isStopped: a stop is in force for the run.
    init(_ result: RunResult, rate: Double?, waits: [String] = [], isStopped: Bool = false) {
        let counts = result.counts
        let settled = counts.audience - counts.pending - counts.leased
        run = result.run
        campaign = result.campaign
        occurrence = result.occurrence
        state = result.state
        words = result.stateWords
        isUnsuccessful = result.halt == RunHalt.unsuccessful.rawValue
        awaitsApproval = result.halt == RunHalt.approval.rawValue
        isTest = result.test
        audience = counts.audience.grouped + (result.frozen ? "" : " so far")
        self.settled = settled.grouped
        left = (counts.pending + counts.leased).grouped
        unknown = counts.unknown.grouped
        progress = counts.audience > 0 ? Double(settled) / Double(counts.audience) : 0
        percent = settled.share(of: counts.audience)
        isOver = RunState(rawValue: result.state)?.isFinal ?? false
        let isMoving = result.state == RunState.running.rawValue && !isStopped
        pace = isMoving ? Self.pace(rate, left: counts.pending + counts.leased, isFrozen: result.frozen) : ""
        parts = Self.parts(result)
        self.waits = waits
        stages = (result.stages ?? []).map {
            Stage(
                number: $0.stage, members: $0.members, state: $0.state, devices: $0.devices.grouped, words: $0.words)
        }
        createdAt = result.createdAt.shownTimeAndZone
        startedAt = result.startedAt.map(\.shownTimeAndZone)
        finishedAt = result.finishedAt.map(\.shownTimeAndZone)
        process = result.process.map { process in
            process + (result.processState.flatMap { $0 == "running" ? nil : ", \($0)" } ?? "")
        }
    }

    private static func pace(_ rate: Double?, left: Int, isFrozen: Bool) -> String {
        guard let rate, rate >= 0.5 else { return "" }
        let speed = "\(Int(rate.rounded()).grouped)/s"
        guard isFrozen, left > 0 else { return speed }
        return "\(speed), about \(WrittenDuration.text(.seconds(Int64((Double(left) / rate).rounded(.up))))) left"
    }

    private static func parts(_ result: RunResult) -> [Part] {
        SumStates.all(result.counts).map { name, count in
            let isListed = count > 0 && name != "leased" && name != "pending"
            return Part(
                name: name, count: count.grouped, share: count.share(of: result.counts.audience),
                address: isListed ? "/runs/\(result.run)/deliveries?state=\(name)" : nil)
        }
    }

    /// What the page was made for.
    var stage: String { "\(state) \(words)" }

    /// What the page of this run shows of it, by place.
    var live: LiveState {
        var values = [
            "words": words, "audience": audience, "settled": settled, "left": left, "percent": percent, "pace": pace,
            "waits": waits.joined(separator: "\n"), "process": process ?? "",
        ]
        for part in parts {
            values["\(part.name).count"] = part.count
            values["\(part.name).share"] = part.share
        }
        for stage in stages {
            values["stage.\(stage.number).state"] = stage.state
            values["stage.\(stage.number).devices"] = stage.devices
            values["stage.\(stage.number).words"] = stage.words
        }
        return LiveState(
            stage: stage, values: values, progress: ["progress": progress],
            announcement: percent.isEmpty
                ? "\(words)."
                : "\(settled) of \(audience), \(percent)" + (pace.isEmpty ? "" : ", \(pace)") + ". \(words).",
            isOver: isOver)
    }
}

extension [RunView] {
    /// The newest run of each campaign, where it finished without success; test runs left out.
    var unsuccessful: [RunView] {
        var seen: Set<String> = []
        return filter { !$0.isTest && seen.insert($0.campaign).inserted && $0.isUnsuccessful }
    }

    var stage: String { map { "\($0.run) \($0.state)" }.joined(separator: ",") }

    /// What the list shows of these, by place.
    var live: LiveState {
        var values: [String: String] = [:]
        var progress: [String: Double] = [:]
        for run in self {
            values["\(run.run).words"] = run.words
            values["\(run.run).settled"] = run.settled
            values["\(run.run).left"] = run.left
            values["\(run.run).unknown"] = run.unknown
            values["\(run.run).pace"] = run.pace
            values["\(run.run).audience"] = run.audience
            progress["\(run.run).progress"] = run.progress
        }
        let moving = filter { !$0.isOver }
        return LiveState(
            stage: stage, values: values, progress: progress,
            announcement: moving.isEmpty
                ? "no run is under way"
                : moving.map { "\($0.campaign): \($0.percent.isEmpty ? $0.words : $0.percent)" }
                    .joined(separator: ", "),
            // A run that begins is to be seen.
            isOver: false)
    }
}
