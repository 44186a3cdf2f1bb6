import Campaigns
import Foundation
import Logging
import Model
import Sending
import Store

/// What keeps the store small: outcomes by device older than the retention are folded into their runs' summaries, some
/// time after the start and then every night, and plans that nothing waits for are ended.
struct Maintenance: Sendable {
    /// By uptime: a hardware clock that is far ahead at the start has been set by then.
    private static let firstAfter: Duration = ConfirmedTime.deletesAfter
    /// After a look that found the clock unconfirmed, or an error of the store.
    private static let retryAfter: Duration = .seconds(300)
    private static let maintenance: Timetable? = {
        var schedule = Schedule(trigger: .cron("0 3 * * *"))
        schedule.zone = .named(TimeZone.current.identifier)
        return Timetable(schedule)
    }()

    let store: any AllRoles
    let actor: Actor
    /// For how long outcomes by device are kept.
    let retention: @Sendable () -> Duration
    let approvals: @Sendable () -> ApprovalRules?
    let clock: WallClock
    let sleepMax: Duration
    let logger: Logger

    /// Until the task is cancelled.
    func run() async {
        var resumesAt = clock.uptime() + Self.firstAfter
        var next: Timestamp?
        while !Task.isCancelled {
            let (now, uptime) = (clock.now(), clock.uptime())
            // A clock that was set back shows that the night planned last lies too far ahead.
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
            await lapseApprovals(time)
            next = Self.night(after: time)
        }
    }

    private static func night(after now: Timestamp) -> Timestamp {
        maintenance?.next(after: now)?.startsAt ?? now + .seconds(86_400)
    }

    /// `nil` while the clock is not confirmed for deletions.
    private func deletionTime() async -> Timestamp? {
        let watch = ConfirmedClock(store: store, clock: clock, actor: actor, logger: logger)
        guard let time = try? await watch.now(confirmedAfter: ConfirmedTime.deletesAfter) else { return nil }
        return time.wait > .zero ? nil : time.moment
    }

    private func lapseApprovals(_ now: Timestamp) async {
        do {
            try await ApprovePlans(store: store, rules: approvals()).lapse(now: now)
        } catch is CancellationError {
        } catch {
            logger.error(
                "plans that nothing waits for stay open; tried again next night",
                metadata: .facts([.error: "\(error)"]))
        }
    }

    private func foldOutcomes(_ now: Timestamp) async {
        do {
            let counts = try await store.pruneOutcomes(
                finishedBefore: now - retention(), dryRun: false, now: now, by: actor)
            guard counts.runs > 0 else { return }
            logger.notice(
                "outcomes past their retention deleted; the reports stay",
                metadata: .facts([.runs: "\(counts.runs)", .outcomes: "\(counts.deliveries)"]))
        } catch is CancellationError {
        } catch {
            logger.error(
                "outcomes past their retention stay; tried again next night", metadata: .facts([.error: "\(error)"]))
        }
    }
}
