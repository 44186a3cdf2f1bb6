import Model

/// The keys of a fault script.
package enum FaultKeys {
    static let faults = Key(
        "faults", .list(of: .fault), required: true, "The rules; the first that takes a request decides.")

    /// The whole script, as data.
    package static let shape = ObjectShape(
        "fault script", "What a simulated APNs does wrong, and when.", [faults.shape])

    // Which requests.
    static let token = Key("token", .deviceToken, "Only those for this device token.")
    static let environment = Key("environment", ValueKind<PushEnvironment>.word, "Only those of this side.")
    static let every = Key("every", .integer(1...1_000_000_000), "Every n-th of these.")
    static let number = Key("number", .integer(1...1_000_000_000), "The n-th of these alone.")
    static let rate = Key("rate", .percent(0...100), "A share of these, by the seed.")
    static let after = Key("after", .integer(0...1_000_000_000), "So many of these are left alone first.")
    static let times = Key("times", .integer(1...1_000_000_000), "The rule ends after so many.")
    static let from = Key("from", time, "Not before so long after the start.")
    static let until = Key("until", time, "Not after so long after the start.")
    private static let time = ValueKind<Duration>.duration(.zero ... .seconds(86_400), example: "5s")

    // What goes wrong.
    static let answer = Key("answer", .scriptedAnswer, "This answer, whatever the request.")
    static let answerLost = Key(
        "answer_lost", ValueKind<ScriptedFault.Loss>.word, "Judged, mostly accepted, and the answer never arrives.")
    static let delay = Key("delay", time, "The answer comes so much later.")
    static let silence = Key(
        "silence", ValueKind<ScriptedFault.Extent>.word,
        "No answer on this stream, or nothing on this connection at all.")
    static let reset = Key("reset", ValueKind<ScriptedFault.Code>.word, "RST_STREAM in place of a look at the request.")
    static let cutAnswer = Key("cut_answer", .yes, "RST_STREAM after the headers of the answer.")
    static let goAway = Key("goaway", .goAway, "GOAWAY.")
    static let streamLimit = Key("stream_limit", .streamLimit, "SETTINGS with another number of streams.")
    static let close = Key("close", .yes, "The connection ends without a word, the request not looked at.")
    static let outage = Key("outage", time, "All connections end, and new ones are refused for so long.")
    static let connect = Key(
        "connect", ValueKind<ScriptedFault.Connect>.word, "Counts connects: dropped before TLS, or never answered.")

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

    enum Answer {
        static let status = Key("status", .integer(200...599), required: true, "The HTTP status.")
        static let reason = Key("reason", ValueKind<String>.text, "APNs' reason, or any other word.")
        static let timestamp = Key("timestamp", .integer(0...Int.max), "Milliseconds since 1970, for 410.")
        static let body = Key("body", ValueKind<String>.text, "In place of a reason: a text that is no JSON.")
        static let shape = ObjectShape(
            "answer", "An answer.", [status.shape, reason.shape, timestamp.shape, body.shape])
    }

    enum GoAway {
        static let lastStream = Key(
            "last_stream", ValueKind<ScriptedFault.GoAway.LastStream>.word, required: true,
            "What may have been processed: none, all before this request, the older half of those open, this, all.")
        static let reason = Key("reason", ValueKind<String>.text, "Apple's JSON as debug data, with this reason.")
        static let text = Key("text", ValueKind<String>.text, "This text as debug data.")
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
