import Foundation
import Model

/// Decoders for the keys under `schedule`.
extension ValueDecoder where Value == Schedule {
    static var schedule: ValueDecoder {
        .object(CampaignKeys.Schedule.shape) { reader in
            let cron = reader[CampaignKeys.Schedule.cron]
            let at = reader[CampaignKeys.Schedule.at]
            if cron != nil, let location = reader.keyLocation("at") {
                reader.collector.error("schedule has both cron and at", "keep one of the two", at: location)
            }
            let starts = reader.keyLocation("cron") ?? reader.keyLocation("at")
            if let starts, reader.keyLocation("zone") == nil {
                reader.collector.error(
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
            schedule.bestHour = reader[CampaignKeys.Schedule.bestHour]
            BestHourRules.check(schedule, reader)
            return schedule
        }
    }

    private static func warnOfIdleKeys(_ reader: ObjectReader, _ starts: SourceLocation?) {
        guard starts == nil else { return }
        // `late_by_max` also applies to an interrupted run, whatever started it.
        let isQuiet = reader.keyLocation("quiet_hours") != nil
        let idle = ["missed_zone", "best_hour"] + (isQuiet ? [] : ["zone", "unknown_zone"])
        for name in idle {
            guard let location = reader.keyLocation(name) else { continue }
            reader.collector.warning(
                "schedule: \(quoted(name)) does nothing without cron or at", "add one of them, or remove it",
                at: location)
        }
    }
}

extension ValueDecoder where Value == Schedule {
    /// Requires `unknown_zone`. A wrong guess could wake a device with an unknown zone at night.
    private static func requireUsualZone(_ reader: ObjectReader, _ zone: Schedule.Zone?, _ starts: SourceLocation?) {
        guard reader.keyLocation("unknown_zone") == nil else { return }
        if zone == .recipient, let starts {
            reader.collector.error(
                "zone: recipient: the local time of devices without a time zone is unknown",
                "add unknown_zone: an IANA time zone such as Europe/Berlin, or drop",
                at: reader.keyLocation("zone") ?? starts)
            return
        }
        guard let location = reader.keyLocation("quiet_hours") else { return }
        if case .named = zone { return }
        reader.collector.error(
            "quiet_hours: the local time of devices without a time zone is unknown",
            "add unknown_zone: an IANA time zone such as Europe/Berlin, or drop", at: location)
    }
}

extension ValueDecoder where Value == Schedule.Zone {
    static var zone: ValueDecoder {
        ValueDecoder<String>.zoneName(or: "recipient").map { $0 == "recipient" ? .recipient : .named($0) }
    }
}

extension ValueDecoder where Value == Schedule.UnknownZone {
    static var unknownZone: ValueDecoder {
        ValueDecoder<String>.zoneName(or: "drop").map { $0 == "drop" ? .drop : .named($0) }
    }
}

extension ValueDecoder where Value == Schedule.QuietHours {
    static var quietHours: ValueDecoder {
        .object(CampaignKeys.QuietHours.shape) { reader in
            let from = reader[CampaignKeys.QuietHours.from]
            let to = reader[CampaignKeys.QuietHours.to]
            let policy = reader[CampaignKeys.QuietHours.policy] ?? .defer
            guard let from, let to else { return nil }
            if from == to {
                reader.collector.error("quiet_hours begin and end at the same time", "", at: reader.location)
            }
            return Schedule.QuietHours(fromMinute: from, toMinute: to, policy: policy)
        }
    }
}

extension ValueDecoder where Value == Int {
    /// A time of day such as `22:00`, as minutes after midnight. Plain `22:00` is a text here, although YAML 1.1 reads
    /// it as a number.
    static var minuteOfDay: ValueDecoder {
        parsed("a time of day", example: "\"22:00\"", form: .pattern("^[0-9]{1,2}:[0-9]{2}$")) { text in
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, parts.allSatisfy({ (1...2).contains($0.utf8.count) }), parts[1].utf8.count == 2,
                let hour = UInt(parts[0]), let minute = UInt(parts[1]), hour < 24, minute < 60
            else { return nil }
            return Int(hour * 60 + minute)
        }
    }
}

extension ValueDecoder where Value == String {
    /// A local date and time without a zone.
    static var localTime: ValueDecoder {
        let form = TextForm.pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?$")
        return parsed("a local date and time", example: "2026-12-01T09:00", form: form) { text in
            let normal = text.replacing(" ", with: "T")
            return normal.contains("T") && WallTime(normal) != nil ? normal : nil
        }
    }

    static var cron: ValueDecoder {
        let form = TextForm.pattern(#"^\s*(@[A-Za-z]+|\S+(\s+\S+){4})\s*$"#)
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
    static func zoneName(or word: String) -> ValueDecoder {
        let shape = ValueShape.either([.choice([word]), .text(summary: "an IANA time zone", example: "Europe/Berlin")])
        return ValueDecoder(shape: shape) { field in
            guard let text = field.text(shape) else { return nil }
            if text == word || ZoneName.isKnown(text) { return text }
            let (what, advice) = ZoneName.refusal(of: text, or: word)
            field.error("\(quoted(field.name)): \(what)", advice)
            return nil
        }
    }
}

extension ValueDecoder {
    fileprivate func map<Other>(_ transform: @escaping @Sendable (Value) -> Other) -> ValueDecoder<Other> {
        ValueDecoder<Other>(shape: shape) { read($0).map(transform) }
    }
}

/// Decoders for the keys under `trigger`.
extension ValueDecoder where Value == FeedTrigger {
    static var trigger: ValueDecoder {
        .object(CampaignKeys.Trigger.shape) { reader in
            let url = reader[CampaignKeys.Trigger.feed]
            let variables = reader[CampaignKeys.Trigger.variables]
            var trigger = FeedTrigger(url: url ?? "")
            trigger.every = reader[CampaignKeys.Trigger.every] ?? trigger.every
            trigger.variables = variables ?? [:]
            trigger.lateByMax = reader[CampaignKeys.Trigger.lateByMax] ?? trigger.lateByMax
            trigger.newMax = reader[CampaignKeys.Trigger.newMax] ?? trigger.newMax
            return url == nil ? nil : trigger
        }
    }
}

extension ValueDecoder where Value == [String: FeedField] {
    static var feedVariables: ValueDecoder {
        let name = ValueShape.text(summary: "a variable of the campaign", form: .pattern(ScalarPattern.variable))
        let shape = ValueShape.map(key: name, ValueDecoder<FeedField>.word.shape)
        return ValueDecoder(shape: shape) { field in
            guard let members = field.members(shape) else { return nil }
            var variables: [String: FeedField] = [:]
            for member in members {
                let value = Field(name: member.key, node: member.value, collector: field.collector)
                variables[member.key] = ValueDecoder<FeedField>.word.read(value)
            }
            return variables
        }
    }
}

extension ValueDecoder where Value == String {
    /// A web address.
    static var webAddress: ValueDecoder {
        let form = TextForm.pattern(#"^[Hh][Tt][Tt][Pp][Ss]?://[^\s/]\S*$"#)
        return parsed("an https address", example: "https://example.com/podcast.xml", form: form) { text in
            guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), let host = url.host,
                ["http", "https"].contains(scheme), !host.isEmpty, !text.contains(where: \.isWhitespace)
            else { return nil }
            return text
        }
        .checked { text, field in
            let url = URL(string: text)
            let isLocal = ["localhost", "127.0.0.1", "::1"].contains(url?.host ?? "")
            guard url?.scheme?.lowercased() == "http", !isLocal else { return }
            field.collector.warning(
                "\(quoted(field.name)) is not https: anyone on the network path can read and change the messages",
                "write https:// if the server supports it", at: field.location)
        }
    }
}

/// Checks of a campaign's feed against its other keys.
enum FeedTriggerRules {
    static func check(_ campaign: Campaign, _ reader: ObjectReader, knowsVariables: Bool) {
        guard let feed = campaign.feed, let trigger = reader.field("trigger") else { return }
        if campaign.schedule.map({ $0.trigger != .none }) == true, let location = reader.keyLocation("trigger") {
            reader.collector.error(
                "the campaign has both a trigger and a schedule with cron or at", "keep one of the two", at: location)
        }
        if knowsVariables { checkVariables(campaign, feed, trigger) }
    }

    private static func checkVariables(_ campaign: Campaign, _ feed: FeedTrigger, _ trigger: Field) {
        let given = trigger.members(of: "variables")
        for member in given where campaign.variables[member.key] == nil {
            let nearest =
                trigger.collector.isFull ? nil : Suggestion.nearest(to: member.key, among: campaign.variables.keys)
            trigger.collector.error(
                "trigger.variables: the campaign has no variable \(quoted(member.key))",
                nearest.map { "did you mean \(quoted($0))?" } ?? "add it under variables", at: member.location)
        }
        let names = Set(given.map(\.key))
        let missing = campaign.variables.filter { $0.value.isEmpty && !names.contains($0.key) }.keys.sorted()
        guard !missing.isEmpty else { return }
        trigger.error(
            "trigger: \(missing.map(quoted).joined(separator: ", ")) gets no value",
            "take it from the item under trigger.variables, for example \(missing[0]): item.title, or give it a default"
        )
    }
}

extension Field {
    fileprivate func members(of key: String) -> [FileNode.Member] {
        guard case .object(let members) = node.content,
            case .object(let inner)? = members.first(where: { $0.key == key })?.value.content
        else { return [] }
        return inner
    }
}
