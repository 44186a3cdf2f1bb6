import Campaigns
import Foundation
import Logging
import Model
import Sending
import Store

/// What keeps the store small: outcomes by device older than the retention are folded into their runs' summaries, some
/// time after the start and then every night, and plans that nothing waits for are ended.
struct Maintenance: Sendable {
    private static let firstAfter: Duration = .seconds(900)
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
        var next = clock.now() + Self.firstAfter
        while !Task.isCancelled {
            let now = clock.now()
            if now < next {
                await clock.sleep(min(next - now, sleepMax))
                continue
            }
            await foldOutcomes(now)
            await lapseApprovals(now)
            next = Self.maintenance?.next(after: now)?.startsAt ?? now + .seconds(86_400)
        }
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
            // A clock set forward a moment ago would make the store forget what still counts.
            if let step = try await store.noteClocks(clock.reading(), by: actor) {
                logger.warning("wall clock set", metadata: .facts([.reason: "\(step)"]))
            }
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
