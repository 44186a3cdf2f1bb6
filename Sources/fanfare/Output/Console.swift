import Campaigns
import Foundation
import Logging
import Model
import Synchronization

/// Prints results to standard output and everything else to standard error. Clears the progress line before other text.
enum Console {
    private static let hasProgressLine = Mutex(false)
    /// The format of lines on standard error. `nil` leaves them unchanged.
    private static let lines = Mutex(
        Journal.isStandardError ? LogLines(.journal, isJournal: true) : nil as LogLines?)

    static let isTerminal = isatty(STDERR_FILENO) == 1

    /// Whether a person can answer questions.
    static var isInteractive: Bool { isatty(STDIN_FILENO) == 1 && isTerminal }

    /// Prints a result. If standard output does not take it, the process exits with ``ExitStatus/inputOutput``
    /// instead of ``ExitStatus/done`` after its work, see ``hasLostResult``.
    static func print(_ text: String) {
        wipe()
        do {
            try writeResult(text + "\n")
        } catch {
            let isFirst = lostResult.withLock { isLost in
                defer { isLost = true }
                return !isLost
            }
            if isFirst { for message in error.messages { self.error("error: \(message)") } }
        }
    }

    /// Writes a part of a result. Returns whether the reader wants more. A reader that has closed the pipe
    /// (`fanfare report | head`) is no error.
    @discardableResult static func writeResult(_ text: String) throws(Failure) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            // In pieces, so that a pipe that takes little at a time does not make the copies add up.
            let piece = Array(rest.prefix(1 << 16))
            let count = Foundation.write(STDOUT_FILENO, piece, piece.count)
            if count >= 0 {
                rest = rest.dropFirst(count)
                continue
            }
            switch errno {
            case EINTR: continue
            case EPIPE: return false
            case EAGAIN:
                var room = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
                poll(&room, 1, -1)
            case let code:
                throw Failure(
                    .inputOutput,
                    "cannot write to standard output: \(String(cString: strerror(code))); the output is incomplete, "
                        + "although the command may have done its work; free disk space, or write to another place")
            }
        }
        return true
    }

    private static let lostResult = Mutex(false)

    /// Whether a result could not be written.
    static var hasLostResult: Bool { lostResult.withLock { $0 } }

    /// Makes notes and errors use the format of the log's lines from now on.
    static func speak(_ lines: LogLines) { self.lines.withLock { $0 = lines } }

    /// Prints a note or a warning to standard error.
    static func note(_ text: String) {
        say(text, text.lowercased().hasPrefix("warning: ") || text.contains(": warning: ") ? .warning : .info)
    }

    static func error(_ text: String) { say(text, .error) }

    private static func say(_ text: String, _ level: Logger.Level) {
        line(lines.withLock { $0 }?.sentence(text, level) ?? text)
    }

    /// Prints a line to standard error unchanged.
    static func line(_ text: String) {
        wipe()
        write(text + "\n", to: FileHandle.standardError)
    }

    /// Replaces the progress line. Call it only if ``isTerminal``.
    static func progress(_ line: String) {
        hasProgressLine.withLock { $0 = true }
        write("\r\u{1B}[2K" + line, to: FileHandle.standardError)
    }

    private static func wipe() {
        let had = hasProgressLine.withLock { flag in
            defer { flag = false }
            return flag
        }
        if had { write("\r\u{1B}[2K", to: FileHandle.standardError) }
    }

    private static func write(_ text: String, to handle: FileHandle) {
        // There is no other place for notes and errors.
        try? handle.write(contentsOf: Data(text.utf8))
    }

    enum Stream {
        case results, notes

        /// Whether the stream is a terminal that shows colours and bold text.
        var isColoured: Bool {
            let environment = ProcessInfo.processInfo.environment
            guard environment["NO_COLOR", default: ""].isEmpty, environment["TERM"] != "dumb" else { return false }
            return isatty(self == .results ? STDOUT_FILENO : STDERR_FILENO) == 1
        }
    }

    /// Returns the text with the name of the production environment in bold red, on a terminal that shows colours.
    static func warned(_ text: String, on stream: Stream) -> String {
        let name = PushEnvironment.production.warningName
        return stream.isColoured ? text.replacing(name, with: "\u{1B}[1;31m\(name)\u{1B}[0m") : text
    }

    /// Asks a question on the terminal. Every answer except yes means no.
    static func confirms(_ question: String) -> Bool {
        write(question + " [y/N] ", to: FileHandle.standardError)
        let answer = readLine()?.lowercased() ?? ""
        return answer == "y" || answer == "yes"
    }
}
