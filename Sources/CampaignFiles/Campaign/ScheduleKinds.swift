import Foundation
import Model

/// How the keys under `schedule` are read.
extension ValueKind where Value == Schedule {
    static var schedule: ValueKind {
        .object(CampaignKeys.Schedule.shape) { reader in
            let cron = reader[CampaignKeys.Schedule.cron]
            let at = reader[CampaignKeys.Schedule.at]
            if cron != nil, let place = reader.keyPlace("at") {
                reader.findings.error("schedule holds cron and at", "keep one of the two", at: place)
            }
            let starts = reader.keyPlace("cron") ?? reader.keyPlace("at")
            if let starts, reader.keyPlace("zone") == nil {
                reader.findings.error(
                    "schedule: the key \"zone\" is missing", "add zone: recipient or an IANA time zone", at: starts)
            }
            warnOfIdleKeys(reader, starts)
            let zone = reader[CampaignKeys.Schedule.zone]
            requireUsualZone(reader, zone, starts)
            var schedule = Schedule(trigger: cron.map { .cron($0) } ?? at.map { .at($0) } ?? .none)
            schedule.zone = zone
            schedule.unknownZone = reader[CampaignKeys.Schedule.unknownZone]
            schedule.missedZone = reader[CampaignKeys.Schedule.missedZone] ?? schedule.missedZone
            schedule.lateByMax = reader[CampaignKeys.Schedule.lateByMax]
            schedule.quietHours = reader[CampaignKeys.Schedule.quietHours]
            return schedule
        }
    }

    private static func warnOfIdleKeys(_ reader: ObjectReader, _ starts: Place?) {
        guard starts == nil else { return }
        let isQuiet = reader.keyPlace("quiet_hours") != nil
        for name in isQuiet ? ["missed_zone", "late_by_max"] : ["zone", "unknown_zone", "missed_zone", "late_by_max"] {
            guard let place = reader.keyPlace(name) else { continue }
            reader.findings.warning(
                "schedule: \(quoted(name)) does nothing without cron or at", "add one of them, or remove it", at: place)
        }
    }
}

extension ValueKind where Value == Schedule {
    /// Whose zone nobody knows should not be woken by a guess of ours.
    private static func requireUsualZone(_ reader: ObjectReader, _ zone: Schedule.Zone?, _ starts: Place?) {
        guard reader.keyPlace("unknown_zone") == nil else { return }
        if zone == .recipient, let starts {
            reader.findings.error(
                "zone: recipient: nothing says what time it is for devices without a time zone",
                "add unknown_zone: an IANA time zone such as Europe/Berlin, or drop",
                at: reader.keyPlace("zone") ?? starts)
            return
        }
        guard let place = reader.keyPlace("quiet_hours") else { return }
        if case .named = zone { return }
        reader.findings.error(
            "quiet_hours: nothing says when devices without a time zone sleep",
            "add unknown_zone: an IANA time zone such as Europe/Berlin, or drop", at: place)
    }
}

extension ValueKind where Value == Schedule.Zone {
    static var zone: ValueKind {
        ValueKind<String>.zoneName(or: "recipient").map { $0 == "recipient" ? .recipient : .named($0) }
    }
}

extension ValueKind where Value == Schedule.UnknownZone {
    static var unknownZone: ValueKind {
        ValueKind<String>.zoneName(or: "drop").map { $0 == "drop" ? .drop : .named($0) }
    }
}

extension ValueKind where Value == Schedule.QuietHours {
    static var quietHours: ValueKind {
        .object(CampaignKeys.QuietHours.shape) { reader in
            let from = reader[CampaignKeys.QuietHours.from]
            let to = reader[CampaignKeys.QuietHours.to]
            let policy = reader[CampaignKeys.QuietHours.policy] ?? .defer
            guard let from, let to else { return nil }
            if from == to {
                reader.findings.error("quiet_hours begin and end at the same time", "", at: reader.place)
            }
            return Schedule.QuietHours(fromMinute: from, toMinute: to, policy: policy)
        }
    }
}

extension ValueKind where Value == Int {
    /// `22:00`, as minutes after midnight. Plain `22:00` is a text here, whatever YAML 1.1 makes of it.
    static var minuteOfDay: ValueKind {
        parsed("a time of day", example: "\"22:00\"", form: .pattern("^[0-9]{1,2}:[0-9]{2}$")) { text in
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, parts.allSatisfy({ (1...2).contains($0.utf8.count) }), parts[1].utf8.count == 2,
                let hour = UInt(parts[0]), let minute = UInt(parts[1]), hour < 24, minute < 60
            else { return nil }
            return Int(hour * 60 + minute)
        }
    }
}

extension ValueKind where Value == String {
    /// A local date and time without a zone.
    static var localTime: ValueKind {
        let form = TextForm.pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?$")
        return parsed("a local date and time", example: "2026-12-01T09:00", form: form) { text in
            let normal = text.replacing(" ", with: "T")
            return normal.contains("T") && WallTime(normal) != nil ? normal : nil
        }
    }

    static var cron: ValueKind {
        let form = TextForm.pattern(#"^(@[a-z]+|\S+(\s+\S+){4})$"#)
        return parsed("five cron fields or @daily", example: "\"0 9 * * MON-FRI\"", form: form) {
            $0.isEmpty ? nil : $0
        }
        .checked { text, field in
            do {
                _ = try CronExpression(text)
            } catch {
                field.error(
                    "cron \(quoted(text)): \(error)", "the fields are minute, hour, day of month, month, day of week")
            }
        }
    }

    /// The name of a time zone, or one other word.
    static func zoneName(or word: String) -> ValueKind {
        let shape = ValueShape.either([.choice([word]), .text(words: "an IANA time zone", example: "Europe/Berlin")])
        return ValueKind(shape: shape) { field in
            guard let text = field.text(shape) else { return nil }
            if text == word || TimeZone(identifier: text) != nil { return text }
            let advice = Suggestion.nearest(to: text, among: [word] + TimeZone.knownTimeZoneIdentifiers)
            field.error(
                "\(quoted(field.name)): no time zone is called \(quoted(text))",
                advice.map { "did you mean \(quoted($0))?" } ?? "write \(word) or a name such as Europe/Berlin")
            return nil
        }
    }
}

extension ValueKind {
    fileprivate func map<Other>(_ transform: @escaping @Sendable (Value) -> Other) -> ValueKind<Other> {
        ValueKind<Other>(shape: shape) { read($0).map(transform) }
    }
}
