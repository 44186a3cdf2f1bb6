import APNs
import APNsSimulator
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

/// Deliveries whose first answer was lost, and whose later attempts ended without an acceptance.
@Suite(.timeLimit(.minutes(10))) struct LostAnswerTests {
    /// The devices whose first answer is lost.
    private static let unlucky = 10..<13

    /// What ends the delivery of such a device.
    enum Ending: CaseIterable, Sendable {
        case tooLarge, gone, unavailable, expired, cancelled

        /// The answer to each later attempt.
        fileprivate var answer: FaultAction {
            switch self {
            case .tooLarge: .answer(status: 413, reason: "PayloadTooLarge")
            case .gone: .answer(status: 410, reason: "Unregistered")
            case .unavailable: .answer(status: 503, reason: "ServiceUnavailable")
            // Pauses the run, so that it expires or is cancelled with these deliveries pending.
            case .expired, .cancelled: .answer(status: 403, reason: "InvalidProviderToken")
            }
        }
    }

    private func scene(_ kind: Configuration.Transport, _ ending: Ending) async throws -> FaultScene {
        try await FaultScene(kind) { options in
            options.faults = Self.unlucky.flatMap { number -> [FaultRule] in
                let token = PipelineScene.token(number)
                return [
                    .answerLost(FaultCondition(token: token, timesMax: 1), by: .reset(code: 2)),
                    FaultRule(when: .token(token).skipping(1), action: ending.answer),
                ]
            }
        }
    }

    @Test(arguments: Configuration.Transport.allCases, Ending.allCases)
    func `each device that APNs accepted is accepted, unknown, or among those that may have arrived`(
        kind: Configuration.Transport, ending: Ending
    ) async throws {
        let scene = try await scene(kind, ending)
        let run = try await scene.start(.resend, expiresAfter: .seconds(10 * 86_400))
        let end = try await scene.execute(run)
        switch ending {
        case .tooLarge, .gone, .unavailable: #expect(end.isFinished, "\(end)")
        case .expired:
            #expect(!end.isFinished, "\(end)")
            scene.simulator.setFaults([])
            scene.base.clock.advance(by: .seconds(15 * 86_400))
            #expect(try await scene.execute(run).isFinished)
        case .cancelled:
            #expect(!end.isFinished, "\(end)")
            let now = scene.base.clock.now + .seconds(86_400)
            try await scene.base.store.change(run.id, to: .cancelled, reason: nil, now: now, by: "ray")
        }
        let books = try await scene.books(run, .resend)
        let doubtful = books.outcomes.values.filter {
            ($0.state == .rejected || $0.state == .suppressed) && $0.doubts > 0
        }
        #expect(!doubtful.isEmpty && books.report.mayHaveArrived == doubtful.count)
        for (number, outcome) in books.outcomes where (books.tally(number)?.accepted ?? 0) > 0 {
            let isKnown = outcome.state == .accepted || outcome.state == .unknown
            #expect(isKnown || outcome.doubts > 0, "device \(number): \(outcome)")
        }
    }
}
