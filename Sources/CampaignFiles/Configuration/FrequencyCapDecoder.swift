import Model

extension ConfigurationKeys {
    enum FrequencyCap {
        static let limit = Key(
            "limit", .integer(1...1000), required: true,
            "The maximum number of visible pushes in any window of that length.")
        static let window = Key(
            "window", .duration(.seconds(60)...Model.FrequencyCap.windowMax, example: "24h"), required: true,
            "The length of the window.")
        static let per = Key(
            "per", ValueDecoder<Model.FrequencyCap.Subject>.word,
            "device, or user: all devices with one user_id together (default: device).")
        static let classes = Key(
            "classes", .list(of: ValueDecoder<String>.name),
            "The classes of campaigns that the cap covers (default: all).")
        static let reserve = Key(
            "reserve", .reserve, "The number of slots reserved for each class.")
        static let shape = ObjectShape(
            "frequency_caps", "The maximum number of visible pushes per device or user.",
            [limit.shape, window.shape, per.shape, classes.shape, reserve.shape])
    }
}

extension ValueDecoder where Value == FrequencyCap {
    static var frequencyCap: ValueDecoder {
        .object(ConfigurationKeys.FrequencyCap.shape) { reader in
            let classes = reader[ConfigurationKeys.FrequencyCap.classes]
            let reserve = reader[ConfigurationKeys.FrequencyCap.reserve] ?? [:]
            let per = reader[ConfigurationKeys.FrequencyCap.per] ?? .device
            let limit = reader[ConfigurationKeys.FrequencyCap.limit]
            let window = reader[ConfigurationKeys.FrequencyCap.window]
            guard let limit, let window else { return nil }
            let cap = FrequencyCap(limit: limit, window: window, per: per, classes: classes, reserve: reserve)
            CapRules.check(cap, reader)
            return cap
        }
    }
}

/// The checks across the keys of a cap.
private enum CapRules {
    static func check(_ cap: FrequencyCap, _ reader: ObjectReader) {
        if let classes = cap.classes, classes.isEmpty {
            reader.collector.error(
                "\"classes\" names no class", "name the classes that the cap covers, or omit the key for all",
                at: reader.keyLocation("classes") ?? reader.location)
        }
        let location = reader.keyLocation("reserve") ?? reader.location
        for name in cap.reserve.keys.sorted() where !cap.covers(name) {
            reader.collector.error(
                "\"reserve\" keeps slots for \(name), which the cap does not cover",
                "add \(name) to its classes, or take it out of reserve", at: location)
        }
        let kept = cap.reserve.values.reduce(0, +)
        if kept > cap.limit {
            reader.collector.error(
                "\"reserve\" keeps \(kept) of \(cap.limit) slots", "keep at most \(cap.limit), or raise the limit",
                at: location)
        }
    }
}

extension ValueDecoder where Value == [String: Int] {
    /// The reserved slots by class.
    static var reserve: ValueDecoder {
        let count = ValueDecoder<Int>.integer(1...1000)
        let shape = ValueShape.map(key: ValueDecoder<String>.name.shape, count.shape)
        return ValueDecoder(shape: shape) { field in
            guard let members = field.members(shape) else { return nil }
            var slots: [String: Int] = [:]
            for member in members {
                guard TextForm.matches(member.key, ScalarPattern.name) else {
                    field.collector.error(
                        "class \(quoted(member.key)) is not a name", "use letters, digits, - _ and .",
                        at: member.location)
                    continue
                }
                let value = Field(name: member.key, node: member.value, collector: field.collector)
                if let number = count.read(value) { slots[member.key] = number }
            }
            return slots
        }
    }
}
