package import Model
import SQLiteStore
import Store
import Testing
import TestSupport

// Runs that follow each device's clock. The time is 2027-01-15T08:00 UTC: 17:00 in Tokyo, 9:00 in Berlin, 3:00 in New
// York.
extension PipelineScene {
    package static let zones = [
        "Asia/Tokyo", "Europe/Berlin", "Europe/Paris", "America/New_York", "Pacific/Apia", nil,
    ]

    /// Creates a scene with a device in each of ``zones``, numbered in that order.
    package static func inZones() async throws -> PipelineScene {
        let scene = try PipelineScene()
        let records = try zones.enumerated().map { number, zone in
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: token(number))), environment: .production, topic: topic)
            record.timeZone = zone
            return record
        }
        _ = try await scene.store.importDevices(records, now: scene.clock.now)
        return scene
    }

    /// Returns a run at 17:00 by each device's clock.
    package func definitionInZones(
        _ missed: Schedule.MissedZone, unknown: Schedule.UnknownZone = .named("Asia/Kolkata"),
        quiet: Schedule.QuietHours? = nil
    ) throws -> RunDefinition {
        var schedule = Schedule(trigger: .at("2027-01-15T17:00"))
        schedule.zone = .recipient
        schedule.missedZone = missed
        schedule.unknownZone = unknown
        schedule.quietHours = quiet
        let occurrence = try #require(Timetable(schedule)?.occurrence(named: "2027-01-15T17:00"))
        return try definition { $0.schedule = schedule }.planned(for: occurrence)
    }
}
