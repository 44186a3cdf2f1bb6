import ArgumentParser
import Foundation
import Logging
import Model

/// The level and format of the log. The configuration supplies what a command does not set.
struct LogOptions: ParsableArguments {
    @Option(help: "The log level on standard error (default: log.level of the configuration, or warning).")
    var logLevel: Configuration.Log.Level?
    @Option(help: "The format of a log line (default: log.format of the configuration, or text).")
    var logFormat: Configuration.Log.Format?

    /// Returns a logger that writes to standard error. From now on, notes and errors use the same format.
    ///
    /// - Parameter usual: the level if none is set and standard error is not the journal.
    func logger(_ configuration: Configuration, usual: Configuration.Log.Level = .warning) -> Logger {
        let level = logLevel ?? configuration.log.level ?? (Journal.isStandardError ? .info : usual)
        let lines = LogLines(
            logFormat ?? configuration.log.format ?? (Journal.isStandardError ? .journal : .text),
            isJournal: Journal.isStandardError)
        Console.speak(lines)
        return lines.logger(level)
    }
}

extension Configuration.Log.Level: ExpressibleByArgument {}
extension Configuration.Log.Format: ExpressibleByArgument {}

/// The systemd journal as the destination of a process's standard error.
enum Journal {
    static let isStandardError = isStream(
        ProcessInfo.processInfo.environment["JOURNAL_STREAM"] ?? "", descriptor: STDERR_FILENO)

    /// Returns whether `JOURNAL_STREAM`, a device and an inode, names the file of a descriptor. A child process
    /// inherits the variable, although its standard error may go elsewhere.
    static func isStream(_ name: String, descriptor: Int32) -> Bool {
        var file = stat()
        guard !name.isEmpty, fstat(descriptor, &file) == 0 else { return false }
        return name == "\(file.st_dev):\(file.st_ino)"
    }

    /// Returns the syslog(3) number that journald removes from the start of a line.
    static func priority(_ level: Logger.Level) -> Int {
        switch level {
        case .critical: 2
        case .error: 3
        case .warning: 4
        case .notice: 5
        case .info: 6
        case .debug, .trace: 7
        }
    }
}

/// The format of the lines that a process writes to standard error.
struct LogLines: Sendable {
    private let format: Configuration.Log.Format
    /// Whether each line starts with its priority.
    private let hasPriority: Bool
    private let now: @Sendable () -> Timestamp

    /// - Parameter isJournal: whether standard error is the journal, in any format.
    init(
        _ format: Configuration.Log.Format, isJournal: Bool,
        now: @escaping @Sendable () -> Timestamp = { Timestamp(Date()) }
    ) {
        self.format = format
        hasPriority = isJournal || format == .journal
        self.now = now
    }

    func logger(_ level: Configuration.Log.Level) -> Logger {
        var logger = Logger(label: "fanfare") { label in
            LineLogHandler(label: label, lines: self) { Console.line($0) }
        }
        logger.logLevel = Logger.Level(rawValue: level.rawValue) ?? .warning
        return logger
    }

    /// Returns a line for a sentence that is not a log event, such as a final error. Text format leaves it unchanged.
    func sentence(_ text: String, _ level: Logger.Level) -> String {
        switch format {
        case .json: json(level, [("message", JSONLine.quoted(text))])
        case .text, .journal: prefixed(text, level)
        }
    }

    func event(_ level: Logger.Level, label: String, _ message: String, _ facts: Logger.Metadata) -> String {
        let sorted = facts.sorted { $0.key < $1.key }
        guard format == .json else {
            let line = ([message] + sorted.map { "\($0.key)=\(Self.value($0.value))" }).joined(separator: " ")
            // journald records the time of each line.
            return hasPriority ? prefixed(line, level) : "\(now().iso8601) \(level.rawValue) \(line)"
        }
        var fields = [("logger", JSONLine.quoted(label)), ("message", JSONLine.quoted(message))]
        let taken: Set = ["time", "level", "logger", "message"]
        // Rename a fact whose key is one of the fixed fields.
        for (key, value) in sorted { fields.append((taken.contains(key) ? key + "_" : key, JSONLine.json(value))) }
        return json(level, fields)
    }

    private func json(_ level: Logger.Level, _ fields: [(String, String)]) -> String {
        let all = [("time", JSONLine.quoted(now().iso8601)), ("level", JSONLine.quoted(level.rawValue))] + fields
        return prefixed("{\(all.map { "\(JSONLine.quoted($0)):\($1)" }.joined(separator: ","))}", level)
    }

    /// Puts the priority in front of each line, because the journal stores each line as an entry.
    private func prefixed(_ text: String, _ level: Logger.Level) -> String {
        guard hasPriority else { return text }
        return text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { "<\(Journal.priority(level))>\($0)" }.joined(separator: "\n")
    }

    /// Returns the value unquoted if it has no blank, quote or equals sign, and quoted otherwise.
    private static func value(_ value: Logger.Metadata.Value) -> String {
        let text =
            switch value {
            case .string(let text): text
            case .stringConvertible(let value): "\(value)"
            case .array, .dictionary: JSONLine.json(value)
            }
        let isPlain = !text.isEmpty && !text.contains { $0.isWhitespace || $0 == "\"" || $0 == "=" }
        return isPlain ? text : JSONLine.quoted(text)
    }
}

/// Writes log events as lines.
struct LineLogHandler: LogHandler {
    private let label: String
    private let lines: LogLines
    private let write: @Sendable (String) -> Void
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel: Logger.Level = .info

    init(label: String, lines: LogLines, write: @escaping @Sendable (String) -> Void) {
        self.label = label
        self.lines = lines
        self.write = write
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var facts = metadata.merging(metadataProvider?.get() ?? [:]) { $1 }.merging(event.metadata ?? [:]) { $1 }
        if let error = event.error, facts["error"] == nil { facts["error"] = "\(error)" }
        write(lines.event(event.level, label: label, event.message.description, facts))
    }
}

private enum JSONLine {
    static func json(_ value: Logger.Metadata.Value) -> String {
        switch value {
        case .string(let text): quoted(text)
        case .stringConvertible(let value): quoted("\(value)")
        case .array(let values): "[\(values.map(json).joined(separator: ","))]"
        case .dictionary(let values):
            "{\(values.sorted { $0.key < $1.key }.map { "\(quoted($0.key)):\(json($0.value))" }.joined(separator: ","))}"
        }
    }

    static func quoted(_ text: String) -> String {
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
