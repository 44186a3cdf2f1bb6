import APNsSimulator
import Foundation
import TestSupport
import Testing

/// The program as it is, with its own deadlines: stopped for longer than each of them, and continued.
@Suite(.ownThread, .timeLimit(.minutes(5))) struct `A sender that is stopped and continued` {
    /// Longer than the 20 s that an answer may take.
    private static let stopSeconds: UInt32 = 22

    @Test(arguments: ["native", "curl"])
    func `sends nothing twice of what was in flight`(transport: String) async throws {
        try await OwnThread.run {
            let place = try Installation.slow(
                faults: [FaultRule(when: .always, action: .delay(milliseconds: 1000))], streams: 100)
            try place.configure(more: "transport: \(transport)")
            let run = try place.startSlowRun()
            run.stop()
            // The rest of the first hundred is in flight.
            let answered = place.simulator.log().count
            #expect(answered < Installation.slowDevices)
            // In real time: the program has no setting for its deadlines.
            sleep(Self.stopSeconds)
            run.signal(SIGCONT)
            let end = try run.finish()
            #expect(end.status == 0, "\(end.errors)")
            #expect(place.simulator.log().count == Installation.slowDevices)
            try place.expectOnceEach()
            #expect(try place.fanfare("report", "slow").output.contains("duplicates") == false)
        }
    }
}
