import ArgumentParser
import Foundation
import Logging
import Model

/// How much is logged, and how.
struct LogOptions: ParsableArguments {
    @Option(help: "What to log on standard error: error, warning, info or debug.") var logLevel = LogLevel.warning
    @Option(help: "How a line of the log is written: text, or json for machines.") var logFormat = LogFormat.text

    var logger: Logger { Self.logger(logLevel, logFormat) }

    /// To standard error.
    static func logger(_ level: LogLevel, _ format: LogFormat) -> Logger {
        var logger =
            switch format {
            case .text: Logger(label: "fanfare", factory: StreamLogHandler.standardError(label:))
            case .json: Logger(label: "fanfare", factory: JSONLogHandler.init(label:))
            }
        logger.logLevel = Logger.Level(rawValue: level.rawValue) ?? .warning
        return logger
    }
}

enum LogLevel: String, ExpressibleByArgument, CaseIterable {
    case error, warning, info, debug
}

enum LogFormat: String, ExpressibleByArgument, CaseIterable {
    case text, json
}

/// One JSON object a line on standard error: `time`, `level`, `message`, and the facts under the names they were given.
struct JSONLogHandler: LogHandler {
    private let label: String
    private let write: @Sendable (String) -> Void
    private let now: @Sendable () -> Timestamp
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel: Logger.Level = .info

    init(label: String) {
        self.init(label: label, now: { Timestamp(Date()) }, write: { Console.note($0) })
    }

    init(label: String, now: @escaping @Sendable () -> Timestamp, write: @escaping @Sendable (String) -> Void) {
        self.label = label
        self.now = now
        self.write = write
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var facts = metadata.merging(metadataProvider?.get() ?? [:]) { $1 }.merging(event.metadata ?? [:]) { $1 }
        if let error = event.error, facts["error"] == nil { facts["error"] = "\(error)" }
        // What every line has cannot be taken by a fact.
        var fields: [(String, String)] = [
            ("time", now().iso8601), ("level", event.level.rawValue), ("logger", label),
            ("message", event.message.description),
        ].map { ($0, Self.quoted($1)) }
        let taken = Set(fields.map(\.0))
        for (key, value) in facts.sorted(by: { $0.key < $1.key }) {
            fields.append((taken.contains(key) ? key + "_" : key, Self.json(value)))
        }
        write("{\(fields.map { "\(Self.quoted($0)):\($1)" }.joined(separator: ","))}")
    }

    private static func json(_ value: Logger.Metadata.Value) -> String {
        switch value {
        case .string(let text): quoted(text)
        case .stringConvertible(let value): quoted("\(value)")
        case .array(let values): "[\(values.map(json).joined(separator: ","))]"
        case .dictionary(let values):
            "{\(values.sorted { $0.key < $1.key }.map { "\(quoted($0.key)):\(json($0.value))" }.joined(separator: ","))}"
        }
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case _ where scalar.value < 0x20:
                quoted +=
                    "\\u" + String(repeating: "0", count: scalar.value < 0x10 ? 3 : 2)
                    + String(scalar.value, radix: 16)
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
