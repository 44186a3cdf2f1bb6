import TestSupport

/// Scenes with stages and frequency caps, killed at each step that protects them. `.ci/run` runs only a few of the
/// steps.
extension Scene {
    private typealias Kill = ScriptedKill

    private static let seeds = "{seeds: tag(\"staff\")}"
    private static let sample = "{share: 25%, tolerate: 10%}"

    static func staged(onServer: Bool) -> [Scene] {
        let steps = onServer ? stepsOnServer : steps
        let scenes = [
            Scene(
                name: "stages", stages: [seeds, sample], devices: 400,
                script: (Nightly.isOn ? steps : few(steps)).map { [Kill(point: $0)] }),
            // Kills between a stage's verdict and the start of the next stage.
            Scene(
                name: "stages that hold", stages: [seeds, "{share: 25%, tolerate: 10%, hold: 200ms}"], devices: 400,
                script: (onServer ? heldOnServer : held).map { [Kill(point: $0)] }),
            // A response of the first stage is lost each time. The policy `skip` leaves the outcome unknown, so a
            // person must decide.
            Scene(
                name: "stages that wait for a person", stages: [seeds, sample], restNeedsApproval: true,
                onUnknown: .skip, devices: 400,
                faults: ["{token: \(staffToken), answer_lost: close}"],
                script: onServer ? personsOnServer : persons),
            Scene(
                name: "stages, faults and kills", stages: [seeds, sample], devices: 1_500, runs: 2,
                faults: [
                    "{number: 700, goaway: {last_stream: middle, reason: Shutdown}}", "{number: 900, close: true}",
                ]),
        ]
        return (Nightly.isOn ? scenes : [scenes[0]]).map { $0.placed(onServer: onServer) }
    }

    /// Returns every fourth step.
    private static func few(_ steps: [KillPoint]) -> [KillPoint] {
        steps.indices.filter { $0 % 4 == 2 }.map { steps[$0] }
    }

    static func capped(onServer: Bool) -> [Scene] {
        // The last run exceeds the cap, and is not killed.
        let script = (onServer ? slotsOnServer : slots).map { [Kill(point: $0)] } + [[]]
        let scenes = [
            Scene(name: "a cap for each device", cap: Cap(limit: 5), devices: 400, script: script),
            Scene(name: "a cap for each user", cap: Cap(limit: 9, isOfUser: true), devices: 400, script: script),
            // A push that APNs refuses without processing releases its slot.
            Scene(
                name: "caps, faults and kills", cap: Cap(limit: 2), devices: 600, runs: 4,
                faults: [
                    "{rate: 1%, times: 40, reset: refused_stream}", "{number: 300, goaway: {last_stream: none}}",
                    "{rate: 0.3%, answer_lost: close}", "{number: 900, close: true}",
                ]),
            Scene(
                name: "caps, killed in a row", cap: Cap(limit: 2, isOfUser: true), devices: 600, runs: 3,
                burst: 20...200, kills: 6),
        ]
        return (Nightly.isOn ? scenes : [scenes[0]]).map { $0.placed(onServer: onServer) }
    }

    private func placed(onServer: Bool) -> Scene {
        var scene = self
        scene.isOnServer = onServer
        if onServer { scene.name += ", on PostgreSQL" }
        if !script.isEmpty { scene.runs = script.count }
        return scene
    }

    /// The token of device 50.
    private static let staffToken = String(repeating: "ab", count: 28) + "00000032"

    private static let steps: [KillPoint] = [
        // While the audience and the stage of each delivery are stored.
        .from("run_claimed", .wal, 30), .from("run_claimed", .unsynced, 2),
        // At the start of the first stage: before it is recorded, in the write-ahead log, and leased with nothing sent.
        .from("stage 1 (", .wal, 1), .from("stage 1 (", .unsynced, 1), .from("stage 1 (", .synced, 1),
        // When its responses have arrived, and while they are recorded.
        .from("stage 1 (", .received, 1), .from("stage 1 (", .wal, 12), .from("stage 1 (", .wal, 25),
        // At its verdict, with which the next stage starts.
        .from("stage 1 (seeds) passed", .wal, 1), .from("stage 1 (seeds) passed", .unsynced, 1),
        .from("stage 2 (", .synced, 1), .from("stage 2 (", .received, 2), .from("stage 2 (", .wal, 18),
        .from("stage 3 (", .wal, 1), .from("stage 3 (", .synced, 1), .from("stage 3 (", .received, 1),
    ]

    private static let stepsOnServer: [KillPoint] = [
        .from("FROM STDIN", .asked, 1), .from("FROM STDIN", .told, 2), .from("UPDATE run_stage SET size", .asked, 1),
        .from("stage 1 (", .asked, 1), .from("stage 1 (", .told, 1), .from("stage 1 (", .asked, 3),
        .from("stage 1 (", .received, 1), .from("DELETE FROM lease USING", .asked, 1),
        .from("DELETE FROM lease USING", .told, 1),
        .from("stage 1 (seeds) passed", .asked, 1), .from("stage 1 (seeds) passed", .told, 2),
        .from("stage 2 (", .asked, 1), .from("stage 2 (", .told, 3), .from("stage 2 (", .asked, 8),
        .from("stage 3 (", .asked, 1), .from("stage 3 (", .told, 2), .from("stage 3 (", .received, 1),
    ]

    private static let held: [KillPoint] = [
        .from("stage 2 (25 %) passed", .wal, 1), .from("stage 2 (25 %) passed", .unsynced, 1),
        .from("stage 3 (", .wal, 1), .from("stage 3 (", .synced, 1),
    ]

    private static let heldOnServer: [KillPoint] = [
        .from("stage 2 (25 %) passed", .asked, 1), .from("stage 2 (25 %) passed", .told, 2),
        .from("stage 3 (", .asked, 1), .from("stage 3 (", .told, 2),
    ]

    /// Kills around the run's pause and the person's answer: before each is recorded completely, and after.
    private static let persons: [[ScriptedKill]] = [
        [Kill(point: .from("run_paused", .wal, 1))], [Kill(point: .from("run_paused", .unsynced, 1))],
        [Kill(command: .resume, point: .from("run_running", .wal, 1))],
        [Kill(command: .resume, point: .from("run_running", .unsynced, 1))],
        [Kill(command: .approve, point: .from("approved by", .wal, 1))],
        [Kill(command: .approve, point: .from("approved by", .unsynced, 1))],
    ]

    private static let personsOnServer: [[ScriptedKill]] = [
        [Kill(point: .from("run_paused", .asked, 1))], [Kill(point: .from("run_paused", .told, 2))],
        [Kill(command: .resume, point: .from("run_running", .asked, 1))],
        [Kill(command: .resume, point: .from("run_running", .told, 2))],
        [Kill(command: .approve, point: .from("approved by", .asked, 1))],
        [Kill(command: .approve, point: .from("approved by", .told, 2))],
    ]

    /// Kills when slots are reserved with a lease, settled, and released during recovery.
    private static let slots: [KillPoint] = [
        .at(.synced, 1), .from("run_claimed", .synced, 1), .at(.received, 6), .from("run_claimed", .wal, 70),
        .at(.unsynced, 3),
    ]

    private static let slotsOnServer: [KillPoint] = [
        .from("UPDATE cap_ledger SET", .asked, 1), .from("UPDATE cap_ledger SET", .told, 1),
        .from("INSERT INTO cap_ledger", .told, 3), .from("DELETE FROM lease USING", .asked, 1),
        .from("DELETE FROM lease USING", .told, 2),
    ]
}
