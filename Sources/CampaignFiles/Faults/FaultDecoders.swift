import Model

/// The keys of a fault script.
package enum FaultKeys {
    static let faults = Key(
        "faults", .list(of: .fault), required: true, "The rules; the first rule that matches a request decides.")

    /// The shape of the whole script.
    package static let shape = ObjectShape(
        "fault script", "The faults of a simulated APNs, and when they occur.", [faults.shape])

    // The affected requests.
    static let token = Key("token", .deviceToken, "Only requests for this device token.")
    static let environment = Key(
        "environment", ValueDecoder<PushEnvironment>.word, "Only requests to this environment.")
    static let every = Key("every", .integer(1...1_000_000_000), "Every n-th selected request.")
    static let number = Key("number", .integer(1...1_000_000_000), "Only the n-th selected request.")
    static let rate = Key("rate", .percent(0...100), "A share of the selected requests, by the seed.")
    static let after = Key("after", .integer(0...1_000_000_000), "The number of selected requests to skip first.")
    static let times = Key("times", .integer(1...1_000_000_000), "The number of faults after which the rule ends.")
    static let from = Key("from", time, "The time after the start when the rule begins.")
    static let until = Key("until", time, "The time after the start when the rule ends.")
    private static let time = ValueDecoder<Duration>.duration(.zero ... .seconds(86_400), example: "5s")

    // The faults.
    static let answer = Key("answer", .scriptedResponse, "The response to send, regardless of the request.")
    static let answerLost = Key(
        "answer_lost", ValueDecoder<ScriptedFault.Loss>.word,
        "Process the request (usually accept it), and lose the response.")
    static let delay = Key("delay", time, "The delay of the response.")
    static let silence = Key(
        "silence", ValueDecoder<ScriptedFault.Extent>.word,
        "No response on this stream, or nothing on this connection at all.")
    static let reset = Key(
        "reset", ValueDecoder<ScriptedFault.Code>.word, "RST_STREAM without processing the request.")
    static let cutAnswer = Key("cut_answer", .yes, "RST_STREAM after the headers of the response.")
    static let goAway = Key("goaway", .goAway, "GOAWAY.")
    static let streamLimit = Key("stream_limit", .streamLimit, "SETTINGS with a different number of streams.")
    static let close = Key("close", .yes, "Close the connection without GOAWAY and without processing the request.")
    static let outage = Key("outage", time, "Close all connections, and refuse new ones for this long.")
    static let connect = Key(
        "connect", ValueDecoder<ScriptedFault.Connect>.word,
        "Drop connects before TLS, or leave them without a response; the rule counts connects.")

    static let ruleShape = ObjectShape(
        "fault", "A selection of requests, and exactly one fault for them.", selection + actions)
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
        static let body = Key("body", ValueDecoder<String>.text, "A text that is not JSON, instead of a reason.")
        static let retryAfter = Key(
            "retry_after", ValueDecoder<String>.text, "The Retry-After header: seconds, or an HTTP date.")
        static let shape = ObjectShape(
            "answer", "A response.", [status.shape, reason.shape, timestamp.shape, body.shape, retryAfter.shape])
    }

    enum GoAway {
        static let lastStream = Key(
            "last_stream", ValueDecoder<ScriptedFault.GoAway.LastStream>.word, required: true,
            "The requests possibly processed: none, all before this one, the older half of the open ones, this, all.")
        static let reason = Key("reason", ValueDecoder<String>.text, "The reason in Apple's JSON, as debug data.")
        static let text = Key("text", ValueDecoder<String>.text, "This text as debug data.")
        static let twice = Key(
            "twice", .boolean, "true: a GOAWAY with the highest stream precedes it, as in an announced shutdown.")
        static let closes = Key(
            "closes", .boolean,
            "true: close the connection immediately, and lose the responses to the streams it promised.")
        static let shape = ObjectShape(
            "goaway", "GOAWAY.", [lastStream.shape, reason.shape, text.shape, twice.shape, closes.shape])
    }

    enum StreamLimit {
        static let streams = Key("streams", .integer(0...100_000), required: true, "The number of concurrent streams.")
        static let time = Key("for", FaultKeys.time, "The time after which the usual number applies again.")
        static let shape = ObjectShape(
            "stream_limit", "The number of streams that a client may have open.", [streams.shape, time.shape])
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
                "a fault with \(given.joined(separator: " and "))", "keep one, and write a rule for each of the others",
                at: reader.keyLocation(given[1]) ?? reader.location)
            return nil
        }
        guard !given.isEmpty else {
            if !reader.collector.hasErrors {
                reader.collector.error(
                    "a fault without an action",
                    "add one of \(FaultKeys.actionNames.joined(separator: ", "))",
                    at: reader.location)
            }
            return nil
        }
        if reader.field("connect") != nil, let location = reader.keyLocation("token") {
            reader.collector.error("a rule for connect cannot select a token", "remove it", at: location)
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
                reader.collector.error("a response has a reason or a body, not both", "keep one of them", at: location)
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
