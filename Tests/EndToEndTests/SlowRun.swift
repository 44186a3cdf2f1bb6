import APNsSimulator
import Foundation
import TestSupport
import Testing

// An installation whose run can be met in the middle.
extension Installation {
    static let slowDevices = 600
    static let slowRun = ["run", "slow", "--occurrence", "a", "--yes"]
    /// Eight requests at a time, each of a second: the run lasts longer than several commands on a busy machine. A test
    /// that waits for its end takes the faults away first.
    static let slowAnswer = FaultRule(when: .always, action: .delay(milliseconds: 1_000))

    /// - Parameters:
    ///   - faults: looked at before the answer is made slow.
    ///   - streams: requests at a time.
    static func slow(
        store: String = "fanfare.sqlite", faults: [FaultRule] = [], streams: Int = 8
    ) throws -> Installation {
        let place = try Installation(devices: slowDevices, store: store) { options in
            options.streamsMax = streams
            options.faults = faults + [slowAnswer]
        }
        try place.folder.write(
            """
            campaign: slow
            topic: \(topic)
            push_type: alert
            template: new-podcast
            audience: everyone
            variables: {title: T, link_url: "https://example.com", show: WenderCast, episode: "1"}
            expires_after: 1h

            """,
            to: "campaigns/slow.yaml")
        let devices = try place.fanfare("devices", "import", "devices.csv")
        try #require(devices.status == 0, "\(devices.errors)")
        return place
    }

    /// Returns in the middle of it.
    func startSlowRun(_ words: [String] = slowRun, inside isolation: Isolation = .none) throws -> RunningProgram {
        let before = simulator.counts().accepted
        let run = try RunningProgram(isolation.arguments(words), in: folder, program: isolation.program)
        try run.wait { simulator.counts().accepted >= before + 16 }
        return run
    }

    /// Returns once a second process sends the run along, on a store in this database.
    func startAlong(_ cluster: PostgresCluster, _ database: String) throws -> RunningProgram {
        let second = try RunningProgram(Self.slowRun, in: folder)
        let senders = "SELECT count(*) FROM run_sender"
        try second.wait { (try? cluster.sql(senders, database: database)) == "2" }
        return second
    }

    func expectOnceEach(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let accepted = simulator.log().filter { $0.status == 200 }.compactMap(\.token)
        #expect(accepted.count == Self.slowDevices, sourceLocation: sourceLocation)
        #expect(Set(accepted).count == Self.slowDevices, sourceLocation: sourceLocation)
        let check = try fanfare("report", "slow", "--check")
        #expect(check.output.contains("The counts balance."), "\(check.output)", sourceLocation: sourceLocation)
    }
}
