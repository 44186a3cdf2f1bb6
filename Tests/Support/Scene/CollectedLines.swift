package import Logging
import Synchronization

/// Collects log messages in memory.
package final class CollectedLines: Sendable {
    package struct Line: Sendable {
        package var level: Logger.Level
        package var message: String
        package var facts: [String: String]
    }

    private let lines = Mutex<[Line]>([])

    package init() {}

    package var all: [Line] { lines.withLock(\.self) }

    /// Returns a logger that collects messages of all levels here.
    package func logger() -> Logger {
        var logger = Logger(label: "test") { _ in Handler(lines: self) }
        logger.logLevel = .trace
        return logger
    }

    private func add(_ line: Line) { lines.withLock { $0.append(line) } }

    private struct Handler: LogHandler {
        let lines: CollectedLines
        var metadata: Logger.Metadata = [:]
        var logLevel: Logger.Level = .trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let facts = metadata.merging(event.metadata ?? [:]) { $1 }.mapValues(\.description)
            lines.add(Line(level: event.level, message: event.message.description, facts: facts))
        }
    }
}
