import APNsSimulator
import Campaigns
import Foundation
import Model

/// The people who use the demo's devices. They tap notifications, dismiss them, switch alerts off and play episodes,
/// with known rates. Their app reports it: some reports are lost, some are sent twice, and some clocks are wrong.
struct DemoPeople {
    static let goal = "played_episode"
    /// The time within which the people of the demo do everything. It is also that of the campaign's goal.
    static let within: Duration = .seconds(5)

    /// A question makes more people open a notification than a statement.
    private static let opens = (question: 0.11, statement: 0.07)
    private static let dismissed = 0.2
    private static let alertsOff = 0.004
    /// The share of people who play the episode anyway, and of those who play it because of the push.
    private static let plays = (anyway: 0.05, byPush: 0.05)
    private static let lost = 0.05
    private static let twice = 0.02
    private static let wrongClock = 0.1

    /// What the people did, whether their reports arrive or not.
    private(set) var truth: [String: Int] = [:]
    private(set) var lines: [String] = []

    private let sentAt: Timestamp
    private var generator = SeededGenerator(seed: 20_261_127)

    /// - Parameter now: the time at which the app sends its reports.
    init(now: Timestamp) { sentAt = now }

    /// Plays the people who got a push. What people do outside of the notification is reported by the installation, as
    /// for the people who got none.
    ///
    /// - Parameter installations: the installation of each token.
    mutating func get(_ pushes: some Collection<SimulatorLogEntry>, installations: [String: String], topic: String) {
        for push in pushes where push.status == 200 {
            guard let installation = push.token.flatMap({ installations[$0] }),
                let payload = push.payload.flatMap({ try? JSONDecoder().decode(Payload.self, from: Data($0)) }),
                let reference = payload.fanfare?.r
            else { continue }
            let source = "\"ref\":\"\(reference)\""
            let sent = Timestamp(milliseconds: push.timeMs)
            let isQuestion = payload.aps.alert.title.hasSuffix("?")
            if chance(isQuestion ? Self.opens.question : Self.opens.statement) {
                report("opened", source, after: sent)
            } else if chance(Self.dismissed) {
                report("dismissed", source, after: sent)
            }
            let device = Self.source(installation, topic)
            if chance(Self.plays.byPush) { report("converted", device, name: Self.goal, after: sent) }
            if chance(Self.alertsOff) { report("alerts_off", device, after: sent) }
        }
    }

    /// Plays all people, those of the holdout too. They do not know of the broadcast.
    mutating func live(devices: Int, topic: String, since start: Timestamp) {
        for number in 0..<devices where chance(Self.plays.anyway) {
            report("converted", Self.source("install-\(number)", topic), name: Self.goal, after: start)
        }
    }

    private static func source(_ installation: String, _ topic: String) -> String {
        "\"installation_id\":\"\(installation)\",\"topic\":\"\(topic)\""
    }

    private mutating func chance(_ rate: Double) -> Bool { Double.random(in: 0..<1, using: &generator) < rate }

    private mutating func report(_ type: String, _ source: String, name: String? = nil, after start: Timestamp) {
        truth[type, default: 0] += 1
        // Most people act soon.
        let late = min(0.9, -log(Double.random(in: 0.01..<1, using: &generator)) / 5)
        let at = min(sentAt, start + Self.within * late)
        guard !chance(Self.lost) else { return }
        let isWrong = chance(Self.wrongClock)
        let clock: Duration = isWrong ? .seconds(Int64.random(in: -90_000...90_000, using: &generator)) : .zero
        let line =
            "{\"id\":\"\(uuid())\",\"type\":\"\(type)\",\(source)"
            + (name.map { ",\"name\":\"\($0)\"" } ?? "")
            + ",\"at\":\"\((at + clock).iso8601)\",\"sent_at\":\"\((sentAt + clock).iso8601)\"}"
        lines.append(line)
        if chance(Self.twice) { lines.append(line) }
    }

    private mutating func uuid() -> String {
        let hex = (0..<2).map { _ in
            let word = String(generator.next(), radix: 16)
            return String(repeating: "0", count: 16 - word.count) + word
        }.joined()
        let lengths = [8, 4, 4, 4, 12]
        var rest = hex[...]
        return lengths.map { length in
            defer { rest = rest.dropFirst(length) }
            return String(rest.prefix(length))
        }.joined(separator: "-")
    }

    /// The parts of a payload that a person and the app read.
    private struct Payload: Decodable {
        struct APS: Decodable { var alert: Alert }
        struct Alert: Decodable { var title: String }
        struct Fanfare: Decodable { var r: String? }

        var aps: APS
        var fanfare: Fanfare?
    }
}
