/// What is tried: a campaign under a policy, against a service with or without faults, with or without kills.
struct Scene: CustomStringConvertible {
    enum OnUnknown: String {
        case resend, skip
    }

    var name: String
    var isSilent = false
    /// The frequency cap of its alerts.
    var cap: Cap?
    /// As in its campaign file, before the rest.
    var stages: [String] = []
    var restNeedsApproval = false
    /// Of how many people a run needs the signatures.
    var signatures = 0
    var onUnknown = OnUnknown.resend
    var devices = 2_500
    /// One after the other, for the same devices.
    var runs = 1
    var lanes = 2
    /// Leases of a quarter of a second each; nil: of 1,000.
    var pace: Int?
    var answerDelayMs = 0
    var transport = "native"
    /// On PostgreSQL, else on a SQLite file.
    var isOnServer = false
    /// Its server may lose the last seconds: what was settled then may go again.
    var mayForget = false
    /// For `fanfare simulator --script`.
    var faults: [String] = []
    var isKilled = true
    /// Kills follow one another so many milliseconds apart, and then it is left alone; nil: at points of their own.
    var burst: ClosedRange<Int>?
    /// Of a burst.
    var kills = 0
    /// Of each run: where its commands are killed, one after the other, each of which must be met; in place of chance.
    var script: [[ScriptedKill]] = []

    var description: String { name }

    /// At most so many within ``budget``'s window, for each device or for all devices of a user together.
    struct Cap {
        var limit: Int
        var isOfUser = false

        /// Whose pushes are counted together.
        func subject(of token: String) -> String {
            isOfUser ? Scene.user(Int(token.suffix(8), radix: 16) ?? 0) : token
        }
    }

    /// Two neighbours are of one user.
    static func user(_ device: Int) -> String { "user-\(device / 2)" }
    /// Who is in the first stage, where it is for `tag("staff")`.
    static func isStaff(_ device: Int) -> Bool { device % 50 == 0 }

    /// Requests that a connection may have on the wire at once.
    static let streams = 100
    static let attemptsMax = 5

    /// Of background pushes per device; longer than any push lives, so that nothing waits for its slot.
    static let budget = (limit: 2, windowMs: 3_600_000)

    /// Shorter than any deadline of ours, so that a scene takes seconds.
    private static let troubles = [
        "{rate: 0.2%, answer_lost: close}",
        "{number: 700, goaway: {last_stream: middle, reason: Shutdown}}",
        "{number: 1100, goaway: {last_stream: none}}",
        "{rate: 0.5%, times: 10, reset: refused_stream}",
        "{rate: 0.2%, times: 5, reset: internal_error}",
        "{number: 1500, close: true}",
    ]

    /// Costs a pause of seconds at a first attempt and of a minute at a second one: not for runs that are killed.
    private static let refusals = ["{after: 300, times: 60, answer: {status: 503, reason: ServiceUnavailable}}"]

    /// For each change: the budget, faults, and kills in a row.
    static let few = [
        all[1], all[3],
        Scene(name: "alerts, resend, killed 5 times in a row", devices: 4_000, burst: 20...200, kills: 5),
    ]
    static let fewOnServer = onServer([all[1], all[3]])

    /// The same promises on a server.
    static let onServer = onServer([all[0], all[1], all[3], all[5], all[8]])

    private static func onServer(_ scenes: [Scene]) -> [Scene] {
        scenes.map { scene in
            var scene = scene
            scene.name += ", on PostgreSQL"
            scene.isOnServer = true
            return scene
        }
    }

    static let all = [
        Scene(name: "alerts, resend, small leases", pace: 2_500),
        Scene(name: "background, skip, four runs in a row", isSilent: true, onUnknown: .skip, devices: 600, runs: 4),
        Scene(name: "alerts, skip, a slow service", onUnknown: .skip, devices: 5_000, lanes: 1, answerDelayMs: 20),
        Scene(name: "alerts, resend, faults and kills", faults: troubles),
        Scene(name: "background, resend, faults and kills", isSilent: true, devices: 600, runs: 4, faults: troubles),
        Scene(name: "alerts, resend, killed 10 times in a row", devices: 10_000, burst: 20...200, kills: 10),
        Scene(
            name: "alerts, resend, killed 12 times in a row under faults", devices: 10_000,
            faults: troubles, burst: 20...600, kills: 12),
        Scene(
            name: "alerts, resend, killed 12 times in a row under faults, curl", devices: 10_000,
            transport: "curl", faults: troubles, burst: 20...600, kills: 12),
        Scene(
            name: "background, resend, six runs killed in a row", isSilent: true, devices: 1_000, runs: 6,
            burst: 20...200, kills: 24),
        Scene(name: "alerts, resend, faults and kills, curl", transport: "curl", faults: troubles),
        Scene(name: "alerts, resend, faults alone", faults: troubles + refusals, isKilled: false),
        Scene(
            name: "background, skip, faults alone", isSilent: true, onUnknown: .skip, devices: 600, runs: 3,
            faults: troubles + refusals, isKilled: false),
    ]
}
