import Foundation
import Storage

/// Who this process is, for the record and for other processes on the store.
enum ThisProcess {
    /// Names this process to others that look at a run.
    static let owner = ProcessName.current.text

    /// Who is running the command, for the record.
    static var actor: String { "\(NSUserName()) (uid \(getuid()))" }

    /// What goes on record with whatever this process does to a store.
    static func facts(origin: StoreProcess.Origin? = nil) -> StoreProcess {
        // systemd sets it for its units.
        let isUnit = ProcessInfo.processInfo.environment["INVOCATION_ID"] != nil && isatty(STDIN_FILENO) == 0
        return StoreProcess(
            uid: Int64(getuid()), user: NSUserName(), command: CommandLine.arguments.map(quoted).joined(separator: " "),
            origin: origin ?? (isUnit ? .timer : .command))
    }

    /// As it could be typed again.
    private static func quoted(_ word: String) -> String {
        let plain = word.allSatisfy { $0.isLetter || $0.isNumber || "-_./=:,@%+".contains($0) }
        return plain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }
}
