import ArgumentParser
import Logging

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
