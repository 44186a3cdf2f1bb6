import Foundation
import TestSupport
import Testing

/// Sets the wall clock of a daemon. The simulator, which keeps the true time, counts the requests.
@Suite(.ownThread, .serialized, .timeLimit(.minutes(10))) struct `A daemon whose wall clock is set` {
    private func scene(_ name: String, devices: Int, runs: Int = 1) -> Scene {
        var scene = Scene(name: name)
        scene.devices = devices
        scene.runs = runs
        return scene
    }

    @Test func `ten minutes ahead for four seconds misses no occurrence, and sends none early`() throws {
        let place = try TurnedInstallation(scene("ten minutes ahead", devices: 40, runs: 2))
        try place.startDaemon()
        for minute in 4...9 {
            try place.write("far\(minute)", at: Date(timeIntervalSinceNow: TimeInterval(60 * minute)))
        }
        let starts = [6, 10].map { Date(timeIntervalSinceNow: $0) }
        for (index, moment) in starts.enumerated() { try place.write("near\(index)", at: moment) }
        try place.turn(by: .seconds(600), for: .seconds(4))
        try place.wait(for: "both runs") { try place.count("run WHERE state = 'finished'") == 2 }
        #expect(try place.count("run") == 2)
        #expect(try place.count("event WHERE kind = 'clock_stepped'") == 2)
        let asked = try place.prove()
        for (run, start) in zip([1, 2] as [Int64], starts) {
            #expect(asked[run, default: 0] >= Int(start.timeIntervalSince1970) * 1_000, "run \(run) was early")
        }
    }

    @Test(.nightly) func `five hours ahead for two seconds lets no delivery of a run expire that lives four hours`()
        throws
    {
        let place = try TurnedInstallation(scene("five hours ahead", devices: 2_000))
        try place.write("hours", "pace: {rate: 250/s}", expiresAfter: "4h")
        try place.startDaemon()
        try place.fanfare("run", "hours", "--occurrence", "1", "--yes", "--no-wait")
        // The clock is not set near the end, because leased deliveries are sent whatever the clock shows.
        try place.turn(to: .seconds(5 * 3600)) {
            let settled = try place.count("delivery WHERE state <> 0")
            try #require(settled < 1_500, "the clock would be set after the end")
            return settled > 200
        }
        usleep(2_000_000)
        try place.turn(to: .zero)
        try place.wait(for: "the run") { try place.count("run WHERE state = 'finished'") == 1 }
        #expect(try place.count("delivery WHERE state = 4") == 0)
        #expect(try place.count("event WHERE kind = 'clock_stepped'") == 2)
        try place.prove()
    }

    @Test(.nightly) func `a month ahead at its start misses no occurrence, and deletes nothing`() throws {
        let place = try TurnedInstallation(scene("a month ahead", devices: 40, runs: 2))
        let minute = (Int(Date().timeIntervalSince1970) / 60 + 30) % 60
        try place.write("hourly", "schedule: {cron: \"\(minute) * * * *\", zone: UTC}")
        try place.startDaemon()
        try place.fanfare("run", "campaign", "--occurrence", "1", "--yes")
        place.stopDaemon()
        let next = Date(timeIntervalSinceNow: 9)
        try place.write("near", at: next)
        place.clock.turn(to: .seconds(30 * 86_400))
        try place.startDaemon()
        try place.wait(for: "the step on record") { try place.steps() == 1 }
        usleep(3_000_000)
        try place.turn(to: .zero)
        try place.wait(for: "the run") { try place.count("run WHERE state = 'finished'") == 2 }
        #expect(try place.count("run") == 2)
        #expect(try place.count("delivery") == 80)
        #expect(try place.count("run WHERE outcomes_pruned_at IS NOT NULL") == 0)
        #expect(try place.prove()[2, default: 0] >= Int(next.timeIntervalSince1970) * 1_000)
    }

    @Test func `back and forth sends nothing twice, and opens no slot of the silent budget`() throws {
        var scene = scene("an hour back, then 80 minutes ahead", devices: 300, runs: 3)
        scene.isSilent = true
        // At this pace a run takes 15 s, in which the clock is set.
        scene.pace = 20
        let place = try TurnedInstallation(scene)
        try place.startDaemon()
        try place.fanfare("run", "campaign", "--occurrence", "1", "--yes", "--no-wait")
        try place.turn(to: .seconds(-3600)) {
            let settled = try place.count("delivery WHERE state <> 0")
            try #require(settled < 280, "the clock would be set after the end")
            return settled > 30
        }
        try place.wait(for: "the first run") { try place.count("run WHERE state = 'finished'") == 1 }
        try place.fanfare("run", "campaign", "--occurrence", "2", "--yes")
        place.clock.turn(to: .seconds(1200))
        try place.fanfare("run", "campaign", "--occurrence", "3", "--yes")
        #expect(try place.count("event WHERE kind = 'clock_stepped'") == 2)
        // The first two runs have used up the budget of each registered device.
        #expect(try place.count("delivery WHERE run_id = 3 AND state = 1") == 0)
        try place.prove()
    }
}
