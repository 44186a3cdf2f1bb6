import ArgumentParser

/// The exit codes of every command.
enum ExitStatus: Int32 {
    case done = 0
    /// Refused by a guard.
    case refused = 3
    /// Invalid file or data.
    case invalidData = 65
    /// No such campaign, run or device.
    case notFound = 66
    /// APNs unreachable, or a breaker open.
    case unavailable = 69
    /// An error inside Fanfare.
    case internalError = 70
    /// Busy, or stopped early: run the same command again.
    case tryAgain = 75
    /// APNs refuses the credential.
    case credentialRefused = 77
    /// The configuration is wrong.
    case configuration = 78

    var exitCode: ExitCode { ExitCode(rawValue) }
}
