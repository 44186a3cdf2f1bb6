import Model

/// The keys of a fault script.
package enum FaultKeys {
    static let faults = Key(
        "faults", .list(of: .fault), required: true, "The rules; the first that takes a request decides.")

    /// The shape of the whole script.
    package static let shape = ObjectShape(
        "fault script", "What a simulated APNs does wrong, and when.", [faults.shape])

    // The affected requests.
    static let token = Key("token", .deviceToken, "Only those for this device token.")
    static let environment = Key("environment", ValueDecoder<PushEnvironment>.word, "Only those of this side.")
    static let every = Key("every", .integer(1...1_000_000_000), "Every n-th of these.")
    static let number = Key("number", .integer(1...1_000_000_000), "The n-th of these alone.")
    static let rate = Key("rate", .percent(0...100), "A share of these, by the seed.")
    static let after = Key("after", .integer(0...1_000_000_000), "So many of these are left alone first.")
    static let times = Key("times", .integer(1...1_000_000_000), "The rule ends after so many.")
    static let from = Key("from", time, "Not before so long after the start.")
    static let until = Key("until", time, "Not after so long after the start.")
    private static let time = ValueDecoder<Duration>.duration(.zero ... .seconds(86_400), example: "5s")

    // The faults.
    static let answer = Key("answer", .scriptedResponse, "This answer, whatever the request.")
    static let answerLost = Key(
        "answer_lost", ValueDecoder<ScriptedFault.Loss>.word, "Judged, mostly accepted, and the answer never arrives.")
    static let delay = Key("delay", time, "The answer comes so much later.")
    static let silence = Key(
        "silence", ValueDecoder<ScriptedFault.Extent>.word,
        "No answer on this stream, or nothing on this connection at all.")
    static let reset = Key(
        "reset", ValueDecoder<ScriptedFault.Code>.word, "RST_STREAM in place of a look at the request.")
    static let cutAnswer = Key("cut_answer", .yes, "RST_STREAM after the headers of the answer.")
    static let goAway = Key("goaway", .goAway, "GOAWAY.")
    static let streamLimit = Key("stream_limit", .streamLimit, "SETTINGS with another number of streams.")
    static let close = Key("close", .yes, "The connection ends without a word, the request not looked at.")
    static let outage = Key("outage", time, "All connections end, and new ones are refused for so long.")
    static let connect = Key(
        "connect", ValueDecoder<ScriptedFault.Connect>.word, "Counts connects: dropped before TLS, or never answered.")

    static let ruleShape = ObjectShape(
        "fault", "Which requests, and exactly one thing that goes wrong with them.", selection + actions)
    private static let selection = [
        token.shape, environment.shape, every.shape, number.shape, rate.shape, after.shape, times.shape, from.shape,
        until.shape,
    ]
    private static let actions = [
        answer.shape, answerLost.shape, delay.shape, silence.shape, reset.shape, cutAnswer.shape, goAway.shape,
        streamLimit.shape, close.shape, outage.shape, connect.shape,
    ]
    static let actionNames = actions.map(\.name)
    static let pickNames = [every.shape.name, number.shape.name, rate.shape.name]

    enum Response {
        static let status = Key("status", .integer(200...599), required: true, "The HTTP status.")
        static let reason = Key("reason", ValueDecoder<String>.text, "APNs' reason, or any other word.")
        static let timestamp = Key("timestamp", .integer(0...Int.max), "Milliseconds since 1970, for 410.")
        static let body = Key("body", ValueDecoder<String>.text, "In place of a reason: a text that is no JSON.")
        static let retryAfter = Key(
            "retry_after", ValueDecoder<String>.text, "The header of that name: seconds, or an HTTP date.")
        static let shape = ObjectShape(
            "answer", "An answer.", [status.shape, reason.shape, timestamp.shape, body.shape, retryAfter.shape])
    }

    enum GoAway {
        static let lastStream = Key(
            "last_stream", ValueDecoder<ScriptedFault.GoAway.LastStream>.word, required: true,
            "What may have been processed: none, all before this request, the older half of those open, this, all.")
        static let reason = Key("reason", ValueDecoder<String>.text, "Apple's JSON as debug data, with this reason.")
        static let text = Key("text", ValueDecoder<String>.text, "This text as debug data.")
        static let twice = Key("twice", .boolean, "One that promises everything goes before it.")
        static let closes = Key("closes", .boolean, "The connection ends at once, with what it promised to answer.")
        static let shape = ObjectShape(
            "goaway", "GOAWAY.", [lastStream.shape, reason.shape, text.shape, twice.shape, closes.shape])
    }

    enum StreamLimit {
        static let streams = Key("streams", .integer(0...100_000), required: true, "Streams at once.")
        static let time = Key("for", FaultKeys.time, "Back to the usual number after so long.")
        static let shape = ObjectShape(
            "stream_limit", "Streams that a client may have open.", [streams.shape, time.shape])
    }
}

extension ValueDecoder where Value == ScriptedFault {
    /// One rule: the affected requests, and exactly one fault.
    static var fault: ValueDecoder {
        .object(FaultKeys.ruleShape) { reader in
            guard let action = FaultRuleDecoder.action(reader), let pick = FaultRuleDecoder.pick(reader) else {
                return nil
            }
            return ScriptedFault(
                token: reader[FaultKeys.token], environment: reader[FaultKeys.environment], pick: pick,
                skip: reader[FaultKeys.after] ?? 0, timesMax: reader[FaultKeys.times], from: reader[FaultKeys.from],
                until: reader[FaultKeys.until], action: action)
        }
    }
}

private enum FaultRuleDecoder {
    static func action(_ reader: ObjectReader) -> ScriptedFault.Action? {
        let given = FaultKeys.actionNames.filter { reader.field($0) != nil }
        guard given.count <= 1 else {
            reader.collector.error(
                "a fault with \(given.joined(separator: " and "))", "keep one, and write a rule for each other",
                at: reader.keyLocation(given[1]) ?? reader.location)
            return nil
        }
        guard !given.isEmpty else {
            if !reader.collector.hasErrors {
                reader.collector.error(
                    "a fault in which nothing goes wrong",
                    "add one of \(FaultKeys.actionNames.joined(separator: ", "))",
                    at: reader.location)
            }
            return nil
        }
        if reader.field("connect") != nil, let location = reader.keyLocation("token") {
            reader.collector.error("a connect has no token", "remove it", at: location)
        }
        return responses(reader) ?? streams(reader) ?? connections(reader)
    }

    private static func responses(_ reader: ObjectReader) -> ScriptedFault.Action? {
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
            reader.collector.error(
                "a fault with \(given.joined(separator: " and "))", "keep one of them",
                at: reader.keyLocation(given[1]) ?? reader.location)
        }
        guard !given.isEmpty else { return .every(1) }
        return reader[FaultKeys.every].map { .every($0) } ?? reader[FaultKeys.number].map { .number($0) }
            ?? reader[FaultKeys.rate].map { .rate($0 / 100) }
    }
}

extension ValueDecoder where Value == DeviceToken {
    static var deviceToken: ValueDecoder {
        parsed("a device token in hex", example: "740f4707bebcf74f…", form: .patternOrNumber("^[0-9A-Fa-f<> ]+$")) {
            DeviceToken(hex: $0)
        }
    }
}

extension ValueDecoder where Value == Bool {
    /// The value of a fault without parameters. Only `true` is allowed.
    static var yes: ValueDecoder {
        boolean.checked { value, field in
            if !value { field.error("\(quoted(field.name)) is false", "remove the rule") }
        }
    }
}

extension ValueDecoder where Value == ScriptedFault.Response {
    static var scriptedResponse: ValueDecoder {
        .object(FaultKeys.Response.shape) { reader in
            if reader.field("reason") != nil, let location = reader.keyLocation("body") {
                reader.collector.error("an answer has a reason or a body", "keep one of them", at: location)
            }
            return reader[FaultKeys.Response.status].map {
                ScriptedFault.Response(
                    status: $0, reason: reader[FaultKeys.Response.reason],
                    timestamp: reader[FaultKeys.Response.timestamp],
                    body: reader[FaultKeys.Response.body], retryAfter: reader[FaultKeys.Response.retryAfter])
            }
        }
    }
}

extension ValueDecoder where Value == ScriptedFault.GoAway {
    static var goAway: ValueDecoder {
        .object(FaultKeys.GoAway.shape) { reader in
            reader[FaultKeys.GoAway.lastStream].map {
                ScriptedFault.GoAway(
                    lastStream: $0, reason: reader[FaultKeys.GoAway.reason], text: reader[FaultKeys.GoAway.text],
                    isTwice: reader[FaultKeys.GoAway.twice] ?? false, closes: reader[FaultKeys.GoAway.closes] ?? false)
            }
        }
    }
}

extension ValueDecoder where Value == (streams: Int, time: Duration?) {
    static var streamLimit: ValueDecoder {
        .object(FaultKeys.StreamLimit.shape) { reader in
            reader[FaultKeys.StreamLimit.streams].map { ($0, reader[FaultKeys.StreamLimit.time]) }
        }
    }
}
