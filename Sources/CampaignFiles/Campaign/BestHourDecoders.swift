import Model

extension ValueDecoder where Value == Schedule.BestHours {
    static var bestHour: ValueDecoder {
        .object(CampaignKeys.BestHour.shape) { reader in
            reader[CampaignKeys.BestHour.until].map { Schedule.BestHours(untilMinute: $0) }
        }
    }
}

/// Checks of `best_hour` against the other keys.
enum BestHourRules {
    /// Checks the keys of the schedule.
    static func check(_ schedule: Schedule, _ reader: ObjectReader) {
        guard let hours = schedule.bestHour, let location = reader.keyLocation("best_hour") else { return }
        guard schedule.trigger != .none else { return }
        let collector = reader.collector
        if let zone = schedule.zone, zone != .recipient {
            collector.error(
                "best_hour follows each device's clock, but the schedule has a fixed zone", "write zone: recipient",
                at: reader.keyLocation("zone") ?? location)
        }
        let starts = minutes(schedule.trigger)
        if hours.untilMinute % 60 != 0 || starts.contains(where: { $0 % 60 != 0 }) {
            collector.error(
                "best_hour needs full hours, but the time in cron, at or until is not a full hour",
                "write for example cron: \"0 8 * * *\" and best_hour: {until: \"21:00\"}", at: location)
        } else if let latest = starts.max(), hours.untilMinute <= latest {
            collector.error(
                "best_hour ends at or before the time of the schedule, and its hours cannot cross midnight",
                "make until later than the time of cron or at", at: location)
        }
    }

    /// Checks the keys of the campaign.
    ///
    /// - Parameter withoutFeedback: gets the errors of a campaign without feedback.
    static func check(_ campaign: Campaign, _ reader: ObjectReader, _ withoutFeedback: DiagnosticCollector) {
        guard campaign.schedule?.bestHour != nil else { return }
        let location = reader.keyLocation("schedule") ?? reader.location
        withoutFeedback.error(
            "best_hour needs the app's reports of opens, and the campaign does not ask for them", "add feedback: true",
            at: location)
    }

    /// Returns the minutes of the day at which the schedule starts; seconds count as a minute.
    private static func minutes(_ trigger: Schedule.Trigger) -> [Int] {
        switch trigger {
        case .none: []
        case .at(let text):
            WallTime(text).map { [Int($0.secondOfDay / 60) + ($0.secondOfDay % 60 == 0 ? 0 : 1)] } ?? []
        case .cron(let text): (try? CronExpression(text))?.minutesOfDay ?? []
        }
    }
}
