import Foundation

/// Who this process is, for the record and for other processes on the store.
enum ThisProcess {
    /// Names this process to others that look at a run.
    static let owner = ProcessName.current.text

    /// Who is running the command, for the record.
    static var actor: String { "\(NSUserName()) (uid \(getuid()))" }
}
