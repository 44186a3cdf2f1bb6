package import Model

/// Reads fault scripts for the simulator. All problems are reported together. There are rules only if none is an error.
package enum FaultScriptFile {
    /// Reads the file at `path`, at most 1 MiB of UTF-8.
    package static func load(path: String) -> ([ScriptedFault]?, [Diagnostic]) {
        let (text, diagnostics) = FileText.load(path)
        guard let text else { return (nil, diagnostics) }
        return read(text: text, path: path)
    }

    package static func read(text: String, path: String) -> ([ScriptedFault]?, [Diagnostic]) {
        read(text, path, advice: "write faults: and a list of rules") { root in
            ObjectReader(root, FaultKeys.shape).flatMap { $0[FaultKeys.faults] }
        }
    }

    /// Reads one rule in braces, as on a command line: `{rate: 1%, answer_lost: close}`. Diagnostics show `source` in
    /// place of a path.
    package static func read(rule text: String, source: String) -> (ScriptedFault?, [Diagnostic]) {
        read(text, source, advice: "write for example {rate: 1%, answer_lost: close}", ValueDecoder.fault.read)
    }

    private static func read<Value>(
        _ text: String, _ path: String, advice: String, _ read: (Field) -> Value?
    ) -> (Value?, [Diagnostic]) {
        let text = FileText.withoutMark(text)
        let collector = DiagnosticCollector(path: path, text: text)
        let value = FileText.root(of: text, into: collector, advice: advice).flatMap(read)
        return (collector.hasErrors ? nil : value, collector.diagnostics)
    }
}

/// One rule of a fault script as written: the affected requests to a simulated APNs, and the fault.
package struct ScriptedFault: Hashable, Sendable {
    package enum Pick: Hashable, Sendable {
        case every(Int)
        case number(Int)
        /// A share from 0 to 1.
        case rate(Double)
    }

    package enum Action: Hashable, Sendable {
        case answer(Response)
        /// The push is checked, and its response never arrives.
        case answerLost(Loss)
        case delay(Duration)
        case silence(Extent)
        case reset(Code)
        case cutAnswer
        case goAway(GoAway)
        case streamLimit(Int, for: Duration?)
        case close
        case outage(Duration)
        case connect(Connect)
    }

    package struct Response: Hashable, Sendable {
        package var status: Int
        package var reason: String?
        /// Milliseconds since 1970.
        package var timestamp: Int?
        /// A text that is not JSON, in place of a reason.
        package var body: String?
        /// The value of `retry-after`.
        package var retryAfter: String?

        package init(
            status: Int, reason: String? = nil, timestamp: Int? = nil, body: String? = nil, retryAfter: String? = nil
        ) {
            self.status = status
            self.reason = reason
            self.timestamp = timestamp
            self.body = body
            self.retryAfter = retryAfter
        }
    }

    package enum Loss: String, Hashable, Sendable, CaseIterable {
        case close, reset, silence
        case silentConnection = "silent_connection"
    }

    package enum Extent: String, Hashable, Sendable, CaseIterable {
        case stream, connection
    }

    /// The error codes of RFC 9113 section 7 that are meaningful to a client.
    package enum Code: String, Hashable, Sendable, CaseIterable {
        case noError = "no_error"
        case protocolError = "protocol_error"
        case internalError = "internal_error"
        case refusedStream = "refused_stream"
        case cancel
        case enhanceYourCalm = "enhance_your_calm"
    }

    package struct GoAway: Hashable, Sendable {
        package enum LastStream: String, Hashable, Sendable, CaseIterable {
            case none, before, middle, this, all
        }

        package var lastStream: LastStream
        package var reason: String?
        package var text: String?
        package var isTwice: Bool
        package var closes: Bool
    }

    package enum Connect: String, Hashable, Sendable, CaseIterable {
        case drop, silence
    }

    package var token: DeviceToken?
    package var environment: PushEnvironment?
    package var pick: Pick
    package var skip: Int
    package var timesMax: Int?
    package var from: Duration?
    package var until: Duration?
    package var action: Action
}
