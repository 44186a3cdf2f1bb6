/// A scenario: a campaign with a policy, an APNs simulator with or without faults, and kills or none.
struct Scene: CustomStringConvertible {
    enum OnUnknown: String {
        case resend, skip
    }

    var name: String
    var isSilent = false
    /// The frequency cap of the campaign's alerts.
    var cap: Cap?
    /// The stages as in the campaign file, without the last one.
    var stages: [String] = []
    var restNeedsApproval = false
    /// The number of signatures that a run needs.
    var signatures = 0
    var onUnknown = OnUnknown.resend
    var devices = 2_500
    /// The number of runs for the same devices, one after another.
    var runs = 1
    var lanes = 2
    /// The devices per second. A lease then contains the devices of 250 ms. `nil` means leases of 1,000 devices.
    var pace: Int?
    var answerDelayMs = 0
    var transport = "native"
    /// Whether the store is on PostgreSQL, not in a SQLite file.
    var isOnServer = false
    /// Whether the server may lose its last seconds. Deliveries that were settled then may be sent again.
    var mayForget = false
    /// The rules for `fanfare simulator --script`.
    var faults: [String] = []
    var isKilled = true
    /// The range of milliseconds between the kills of a burst. After the burst, the run is not disturbed. `nil` means
    /// kills at random points.
    var burst: ClosedRange<Int>?
    /// The number of kills of a burst.
    var kills = 0
    /// The kills of each run, one after another, instead of random ones. The run must reach each of them.
    var script: [[ScriptedKill]] = []

    var description: String { name }

    /// The maximum number of pushes within the window of ``budget``, for each device or for all devices of a user
    /// together.
    struct Cap {
        var limit: Int
        var isOfUser = false

        /// Returns the device or the user whose pushes are counted together.
        func subject(of token: String) -> String {
            isOfUser ? Scene.user(Int(token.suffix(8), radix: 16) ?? 0) : token
        }
    }

    /// Returns the user of a device. Two neighbouring devices belong to the same user.
    static func user(_ device: Int) -> String { "user-\(device / 2)" }
    /// Whether a device has the tag `staff`, which selects the first stage.
    static func isStaff(_ device: Int) -> Bool { device % 50 == 0 }

    /// The maximum number of concurrent requests on a connection.
    static let streams = 100
    static let attemptsMax = 5

    /// The budget of background pushes for each device. Its window is longer than any push lives, so no push waits for
    /// its slot.
    static let budget = (limit: 2, windowMs: 3_600_000)

    /// Faults that cost less than any deadline, so that a scene takes seconds.
    private static let troubles = [
        "{rate: 0.2%, answer_lost: close}",
        "{number: 700, goaway: {last_stream: middle, reason: Shutdown}}",
        "{number: 1100, goaway: {last_stream: none}}",
        "{rate: 0.5%, times: 10, reset: refused_stream}",
        "{rate: 0.2%, times: 5, reset: internal_error}",
        "{number: 1500, close: true}",
    ]

    /// A fault that costs a pause of seconds after a first attempt, and of a minute after a second one. Runs that are
    /// killed do not use it.
    private static let refusals = ["{after: 300, times: 60, answer: {status: 503, reason: ServiceUnavailable}}"]

    /// The scenes of `.ci/run`: the budget, faults, and kills in a row.
    static let few = [
        all[1], all[3],
        Scene(name: "alerts, resend, killed 5 times in a row", devices: 4_000, burst: 20...200, kills: 5),
    ]
    static let fewOnServer = onServer([all[1], all[3]])

    /// Scenes that prove the same guarantees on a server.
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
