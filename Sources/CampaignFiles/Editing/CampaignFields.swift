import Model

/// The composer's fields of a campaign file.
enum CampaignFields {
    static let order = [
        "": CampaignKeys.shape.keys.map(\.name), "schedule": CampaignKeys.Schedule.shape.keys.map(\.name),
        "schedule.quiet_hours": CampaignKeys.QuietHours.shape.keys.map(\.name),
        "trigger": CampaignKeys.Trigger.shape.keys.map(\.name), "guards": CampaignKeys.Guards.shape.keys.map(\.name),
    ]

    private static let shown: Set<String> = [
        "campaign", "topic", "push_type", "template", "audience", "variables", "schedule", "trigger", "expires_after",
        "priority", "guards",
    ]

    private static let reachGuards = ["max_reach", "min_reach"]

    static func read(_ root: FileNode) -> [String: String] {
        var values = AudienceFields.read(root)
        for name in root["variables"]?.keys ?? [] { values["variables.\(name)"] = root.text("variables", name) }
        values["priority"] = root.text("priority")
        values["expires_after"] = root.text("expires_after")
        for name in reachGuards { values["guards.\(name)"] = root.text("guards", name) }
        values.merge(start(root)) { $1 }
        for name in ["zone", "unknown_zone", "late_by_max"] { values[name] = root.text("schedule", name) }
        for name in ["from", "to", "policy"] { values["quiet.\(name)"] = root.text("schedule", "quiet_hours", name) }
        return values
    }

    private static func start(_ root: FileNode) -> [String: String] {
        var values = ["start": "hand"]
        values["feed"] = root.text("trigger", "feed")
        values["feed.every"] = root.text("trigger", "every")
        for name in root["trigger"]?["variables"]?.keys ?? [] {
            values["feed.variables.\(name)"] = root.text("trigger", "variables", name)
        }
        let (at, cron) = (root.text("schedule", "at"), root.text("schedule", "cron"))
        if root["trigger"] != nil { values["start"] = "feed" }
        if !at.isEmpty {
            values["start"] = "once"
            let parts = at.replacing(" ", with: "T").split(separator: "T", maxSplits: 1).map(String.init)
            values["at.date"] = parts.first ?? ""
            values["at.time"] = parts.count > 1 ? parts[1] : ""
        } else if !cron.isEmpty {
            values["start"] = "repeat"
            if let simple = WeeklyTime(cron: cron) {
                values["repeat.time"] = simple.time
                for day in simple.days { values["repeat.\(day)"] = "on" }
            } else {
                values["repeat.cron"] = cron
            }
        }
        return values
    }

    /// Returns the values of the file, by path.
    static func values(_ fields: ComposerFields, files: ComposedFiles) -> [[String]: YAMLValue] {
        var values: [[String]: YAMLValue] = [:]
        for name in fields.names(behind: "variables.") {
            values[["variables", name]] = .text(fields["variables.\(name)"])
        }
        for name in ["priority", "expires_after"] where !fields[name].isEmpty { values[[name]] = .word(fields[name]) }
        for name in reachGuards where !fields["guards.\(name)"].isEmpty {
            values[["guards", name]] = .word(fields["guards.\(name)"])
        }
        values[["audience"]] = AudienceFields.value(fields)
        addStart(fields, to: &values)
        addQuietHours(fields, to: &values)
        if fields.usesUnknownZone { values[["schedule", "unknown_zone"]] = unknownZone(fields) }
        return values
    }

    private static func addStart(_ fields: ComposerFields, to values: inout [[String]: YAMLValue]) {
        func put(_ name: String, _ value: YAMLValue, _ text: String) {
            if !text.isEmpty { values[["schedule", name]] = value }
        }
        put("late_by_max", .word(fields["late_by_max"]), fields["late_by_max"])
        switch fields["start"] {
        case "once":
            let time = "\(fields["at.date"])T\(fields["at.time"])"
            put("at", .word(time), fields["at.date"])
        case "repeat":
            let cron = fields["repeat.cron"]
            let weekly = WeeklyTime(
                time: fields["repeat.time"], days: ComposerFields.weekdays.filter { fields["repeat.\($0)"] == "on" })
            put("cron", .text(cron.isEmpty ? weekly.cron : cron), cron.isEmpty ? weekly.cron : cron)
        case "feed":
            values[["trigger", "feed"]] = .word(fields["feed"])
            if !fields["feed.every"].isEmpty { values[["trigger", "every"]] = .word(fields["feed.every"]) }
            for name in fields.names(behind: "feed.variables.") {
                let source = fields["feed.variables.\(name)"]
                if !source.isEmpty { values[["trigger", "variables", name]] = .word(source) }
            }
            return
        default: return
        }
        put("zone", .word(fields["zone"]), fields["zone"])
    }

    private static func addQuietHours(_ fields: ComposerFields, to values: inout [[String]: YAMLValue]) {
        guard !fields["quiet.from"].isEmpty || !fields["quiet.to"].isEmpty else { return }
        for name in ["from", "to"] {
            let time = fields["quiet.\(name)"]
            if !time.isEmpty { values[["schedule", "quiet_hours", name]] = .text(time) }
        }
        let policy = fields["quiet.policy"]
        if !policy.isEmpty { values[["schedule", "quiet_hours", "policy"]] = .word(policy) }
    }

    private static func unknownZone(_ fields: ComposerFields) -> YAMLValue {
        .word(fields["unknown_zone"].isEmpty ? "drop" : fields["unknown_zone"])
    }

    static func beyond(_ root: FileNode) -> [String] {
        root.keys.filter { !shown.contains($0) }
            + ["max_growth"].filter { root["guards"]?[$0] != nil }
            + ["missed_zone", "best_hour"].filter { root["schedule"]?[$0] != nil }
            + ["late_by_max", "max_new"].filter { root["trigger"]?[$0] != nil }.map { "trigger.\($0)" }
    }
}

/// A time of day on certain days of the week, the only cron expressions that the form shows as fields.
struct WeeklyTime: Hashable {
    var time: String
    /// Empty for every day.
    var days: [String]

    init(time: String, days: [String]) {
        self.time = time
        self.days = days.count == ComposerFields.weekdays.count ? [] : days
    }

    /// Returns `nil` for any other expression.
    init?(cron: String) {
        let parts = cron.split(whereSeparator: \.isWhitespace).map(String.init)
        guard parts.count == 5, parts[2] == "*", parts[3] == "*" else { return nil }
        guard let minute = Self.number(parts[0], below: 60), let hour = Self.number(parts[1], below: 24) else {
            return nil
        }
        guard let days = Self.days(parts[4]) else { return nil }
        self.init(time: Self.padded(hour) + ":" + Self.padded(minute), days: days)
    }

    /// Empty if the time is not a time of day.
    var cron: String {
        let parts = time.split(separator: ":").map(String.init)
        guard parts.count == 2, let hour = Self.number(parts[0], below: 24),
            let minute = Self.number(parts[1], below: 60)
        else { return "" }
        return "\(minute) \(hour) * * \(Self.text(of: days))"
    }

    private static func text(of days: [String]) -> String {
        let all = ComposerFields.weekdays
        let numbers = days.compactMap { all.firstIndex(of: $0) }.sorted()
        guard let first = numbers.first, let last = numbers.last else { return "*" }
        let isRange = numbers.count > 2 && last - first == numbers.count - 1
        return isRange ? "\(all[first])-\(all[last])" : numbers.map { all[$0] }.joined(separator: ",")
    }

    private static func days(_ text: String) -> [String]? {
        let all = ComposerFields.weekdays
        if text == "*" { return [] }
        // A day as cron numbers it: 1 is Monday, and 0 and 7 are Sunday.
        func day(_ word: Substring) -> Int? {
            number(String(word), below: 8) ?? all.firstIndex(of: word.uppercased()).map { ($0 + 1) % 7 }
        }
        var found: Set<Int> = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false)
            guard (1...2).contains(ends.count), let first = day(ends[0]), let last = day(ends[ends.count - 1]) else {
                return nil
            }
            // A range may pass the end of the week.
            for number in first...(first <= last ? last : last + 7) { found.insert((number + 6) % 7) }
        }
        return all.indices.filter(found.contains).map { all[$0] }
    }

    private static func number(_ text: String, below limit: Int) -> Int? {
        guard (1...2).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int(text), number < limit
        else { return nil }
        return number
    }

    private static func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
