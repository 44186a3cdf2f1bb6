import Campaigns
import Model
import Sending
import Store

/// Records the reports of apps that were set aside while a run was sent, so that they appear in reports. It does so
/// after the run, at the end of the daemon, or when they have waited for ``waitMax``.
struct WaitingFeedbackRecorder: Sendable {
    /// The longest wait of a report. The longer it is, the more reports change the same pages of the store.
    static let waitMax: Duration = .seconds(60)

    let store: any FeedbackLog
    let clock: WallClock
    let lookEvery: Duration
    let isSending: @Sendable () -> Bool

    /// Works until the task is cancelled.
    func run() async throws {
        while !Task.isCancelled {
            do { try await look() } catch is CancellationError { break }
            await clock.sleep(lookEvery)
        }
        // A cancelled task would read nothing. The next start records what is left if this fails.
        _ = try? await Task { [store] in try await store.recordWaitingFeedback(tally: ServiceMetrics.reported) }.value
    }

    private func look() async throws {
        guard try await isDue(),
            let row = try await store.recordWaitingFeedback(tally: ServiceMetrics.reported).first
        else { return }
        throw Failure(
            .invalidData,
            "the reports in row \(row) of the table waiting_feedback cannot be read, so they are not counted; "
                + "others are. Save a copy of the row, and delete it; this message then ends")
    }

    private func isDue() async throws -> Bool {
        guard let waiting = try await store.waitingFeedback() else { return false }
        // A wait that is negative means that the clock was set back.
        return !isSending() || !(.zero..<Self.waitMax).contains(clock.now() - waiting.since)
    }
}
