import Model

extension ValueKind where Value == ScriptedFault {
    /// One rule: which requests, and exactly one fault.
    static var fault: ValueKind {
        .object(FaultKeys.ruleShape) { reader in
            guard let action = FaultReading.action(reader), let pick = FaultReading.pick(reader) else { return nil }
            return ScriptedFault(
                token: reader[FaultKeys.token], environment: reader[FaultKeys.environment], pick: pick,
                skip: reader[FaultKeys.after] ?? 0, timesMax: reader[FaultKeys.times], from: reader[FaultKeys.from],
                until: reader[FaultKeys.until], action: action)
        }
    }
}

private enum FaultReading {
    static func action(_ reader: ObjectReader) -> ScriptedFault.Action? {
        let given = FaultKeys.actionNames.filter { reader.field($0) != nil }
        guard given.count <= 1 else {
            reader.findings.error(
                "a fault with \(given.joined(separator: " and "))", "keep one, and write a rule for each other",
                at: reader.keyPlace(given[1]) ?? reader.place)
            return nil
        }
        guard !given.isEmpty else {
            if !reader.findings.hasErrors {
                reader.findings.error(
                    "a fault in which nothing goes wrong",
                    "add one of \(FaultKeys.actionNames.joined(separator: ", "))",
                    at: reader.place)
            }
            return nil
        }
        if reader.field("connect") != nil, let place = reader.keyPlace("token") {
            reader.findings.error("a connect has no token", "remove it", at: place)
        }
        return answers(reader) ?? streams(reader) ?? connections(reader)
    }

    private static func answers(_ reader: ObjectReader) -> ScriptedFault.Action? {
        reader[FaultKeys.answer].map { .answer($0) } ?? reader[FaultKeys.answerLost].map { .answerLost($0) }
            ?? reader[FaultKeys.delay].map { .delay($0) } ?? reader[FaultKeys.cutAnswer].map { _ in .cutAnswer }
    }

    private static func streams(_ reader: ObjectReader) -> ScriptedFault.Action? {
        reader[FaultKeys.silence].map { .silence($0) } ?? reader[FaultKeys.reset].map { .reset($0) }
            ?? reader[FaultKeys.streamLimit].map { .streamLimit($0.streams, for: $0.time) }
    }

    private static func connections(_ reader: ObjectReader) -> ScriptedFault.Action? {
        reader[FaultKeys.goAway].map { .goAway($0) } ?? reader[FaultKeys.close].map { _ in .close }
            ?? reader[FaultKeys.outage].map { .outage($0) } ?? reader[FaultKeys.connect].map { .connect($0) }
    }

    static func pick(_ reader: ObjectReader) -> ScriptedFault.Pick? {
        let given = FaultKeys.pickNames.filter { reader.field($0) != nil }
        if given.count > 1 {
            reader.findings.error(
                "a fault with \(given.joined(separator: " and "))", "keep one of them",
                at: reader.keyPlace(given[1]) ?? reader.place)
        }
        guard !given.isEmpty else { return .every(1) }
        return reader[FaultKeys.every].map { .every($0) } ?? reader[FaultKeys.number].map { .number($0) }
            ?? reader[FaultKeys.rate].map { .rate($0 / 100) }
    }
}

extension ValueKind where Value == DeviceToken {
    static var deviceToken: ValueKind {
        parsed("a device token in hex", example: "740f4707bebcf74f…", form: .patternOrNumber("^[0-9A-Fa-f<> ]+$")) {
            DeviceToken(hex: $0)
        }
    }
}

extension ValueKind where Value == Bool {
    /// A fault without anything to say about it.
    static var yes: ValueKind {
        boolean.checked { value, field in
            if !value { field.error("\(quoted(field.name)) is false", "remove the rule") }
        }
    }
}

extension ValueKind where Value == ScriptedFault.Answer {
    static var scriptedAnswer: ValueKind {
        .object(FaultKeys.Answer.shape) { reader in
            if reader.field("reason") != nil, let place = reader.keyPlace("body") {
                reader.findings.error("an answer has a reason or a body", "keep one of them", at: place)
            }
            return reader[FaultKeys.Answer.status].map {
                ScriptedFault.Answer(
                    status: $0, reason: reader[FaultKeys.Answer.reason], timestamp: reader[FaultKeys.Answer.timestamp],
                    body: reader[FaultKeys.Answer.body])
            }
        }
    }
}

extension ValueKind where Value == ScriptedFault.GoAway {
    static var goAway: ValueKind {
        .object(FaultKeys.GoAway.shape) { reader in
            reader[FaultKeys.GoAway.lastStream].map {
                ScriptedFault.GoAway(
                    lastStream: $0, reason: reader[FaultKeys.GoAway.reason], text: reader[FaultKeys.GoAway.text],
                    isTwice: reader[FaultKeys.GoAway.twice] ?? false, closes: reader[FaultKeys.GoAway.closes] ?? false)
            }
        }
    }
}

extension ValueKind where Value == (streams: Int, time: Duration?) {
    static var streamLimit: ValueKind {
        .object(FaultKeys.StreamLimit.shape) { reader in
            reader[FaultKeys.StreamLimit.streams].map { ($0, reader[FaultKeys.StreamLimit.time]) }
        }
    }
}
