import Foundation
import Model
import Sending

/// Who this process is, for the record and for other processes on the store.
enum ThisProcess {
    /// Who runs the command, as the operating system knows them.
    static var actor: Actor {
        // systemd sets it for its units.
        let isUnit = ProcessInfo.processInfo.environment["INVOCATION_ID"] != nil && isatty(STDIN_FILENO) == 0
        return Actor(
            "\(NSUserName()) (uid \(getuid()))", authentication: .account(uid: Int64(getuid()), user: NSUserName()),
            origin: isUnit ? .timer : .command, command: CommandLine.arguments.map(quoted).joined(separator: " "))
    }

    /// This process as a sender of runs: others that look at a run see its name.
    static var sender: Actor { actor.named(ProcessName.current.text) }

    /// The same for `serve`.
    static var daemon: Actor {
        var daemon = sender
        daemon.origin = .daemon
        return daemon
    }

    /// As it could be typed again.
    private static func quoted(_ word: String) -> String {
        let plain = word.allSatisfy { $0.isLetter || $0.isNumber || "-_./=:,@%+".contains($0) }
        return plain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }
}
