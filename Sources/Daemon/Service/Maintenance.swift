import Campaigns
import Foundation
import Logging
import Model
import Sending
import Store

/// Keeps the store small. It folds outcomes by device older than the retention into their runs' summaries, deletes old
/// reports of apps, the rows of removed devices and messages to removed webhooks, and ends plans that no occurrence
/// waits for. It works some time after the start, and then every night.
struct Maintenance: Sendable {
    /// The delay after the start, by uptime. A hardware clock that was far ahead at the start has been corrected by
    /// then.
    private static let firstAfter: Duration = ConfirmedTime.deletesAfter
    /// The delay after a check that found the clock unconfirmed, or after an error of the store.
    private static let retryAfter: Duration = .seconds(300)
    private static let maintenance: Timetable? = {
        var schedule = Schedule(trigger: .cron("0 3 * * *"))
        schedule.zone = .named(TimeZone.current.identifier)
        return Timetable(schedule)
    }()

    let store: any ApprovePlans.PlanStore & StoreUpkeep & FeedbackLog & DeviceRegistry & DaemonLog
    let actor: Actor
    let retention: @Sendable () -> Configuration.Retention
    let approvals: @Sendable () -> ApprovalRules?
    let clock: WallClock
    let sleepMax: Duration
    let logger: Logger

    /// Works until the task is cancelled.
    func run() async {
        var resumesAt = clock.uptime() + Self.firstAfter
        var next: Timestamp?
        while !Task.isCancelled {
            let (now, uptime) = (clock.now(), clock.uptime())
            // If the clock was set back, the planned night is too far ahead.
            next = next.map { min($0, Self.night(after: now)) }
            let wait = max(resumesAt - uptime, next.map { $0 - now } ?? .zero)
            if wait > .zero {
                await clock.sleep(min(wait, sleepMax))
                continue
            }
            guard let time = await deletionTime() else {
                resumesAt = uptime + Self.retryAfter
                continue
            }
            await foldOutcomes(time)
            await deleteReports(time)
            await deleteRemovedDevices(time)
            await deleteWebhookMessages(time)
            await lapseApprovals(time)
            next = Self.night(after: time)
        }
    }

    private static func night(after now: Timestamp) -> Timestamp {
        maintenance?.next(after: now)?.startsAt ?? now + .seconds(86_400)
    }

    /// Returns the time for deletions. `nil` while the clock is not confirmed for them.
    private func deletionTime() async -> Timestamp? {
        let watch = ConfirmedClock(store: store, clock: clock, actor: actor, logger: logger)
        guard let time = try? await watch.now(confirmedAfter: ConfirmedTime.deletesAfter) else { return nil }
        return time.wait > .zero ? nil : time.moment
    }

    private func foldOutcomes(_ now: Timestamp) async {
        await work(
            "outcomes past their retention deleted; the reports remain",
            failure: "outcomes past their retention were not deleted; retrying next night"
        ) {
            let counts = try await store.pruneOutcomes(
                finishedBefore: now - retention().outcomes, dryRun: false, now: now, by: actor)
            guard counts.runs > 0 else { return nil }
            return .facts([.runs: "\(counts.runs)", .outcomes: "\(counts.deliveries)"])
        }
    }

    private func deleteReports(_ now: Timestamp) async {
        await work(
            "deleted the reports of apps that are past their retention; the counts of runs remain",
            failure: "could not delete the reports of apps that are past their retention; retrying next night"
        ) {
            let count = try await store.removeFeedback(receivedBefore: now - retention().events, now: now)
            return count > 0 ? .facts([.reports: "\(count)"]) : nil
        }
    }

    private func deleteRemovedDevices(_ now: Timestamp) async {
        await work(
            "deleted the rows of removed devices whose pushes no longer count",
            failure: "could not delete the rows of removed devices; retrying next night"
        ) {
            let count = try await store.pruneRemovedDevices(now: now, by: actor).total
            return count > 0 ? .facts([.devices: "\(count)"]) : nil
        }
    }

    private func deleteWebhookMessages(_ now: Timestamp) async {
        await work(
            "deleted old messages to webhooks that no configuration names",
            failure: "could not delete old messages to removed webhooks; retrying next night"
        ) {
            let count = try await store.pruneWebhooks(messagesBefore: now - WebhookDispatcher.keptFor)
            return count > 0 ? .facts([.messages: "\(count)"]) : nil
        }
    }

    private func lapseApprovals(_ now: Timestamp) async {
        await work(failure: "plans that no run waits for stay open; retrying next night") {
            try await ApprovePlans(store: store, rules: approvals()).lapse(now: now)
            return nil
        }
    }

    /// Does one of the jobs of a night. Its error ends none of the others.
    ///
    /// - Parameters:
    ///   - success: what the log says if the job returns facts.
    ///   - failure: what the log says if the job throws.
    private func work(
        _ success: Logger.Message = "", failure: Logger.Message, _ job: () async throws -> Logger.Metadata?
    ) async {
        do {
            guard let facts = try await job() else { return }
            logger.notice(success, metadata: facts)
        } catch is CancellationError {
        } catch {
            logger.error(failure, metadata: .facts([.error: "\(error)"]))
        }
    }
}
