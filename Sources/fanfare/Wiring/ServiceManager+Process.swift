import Foundation
import Systemd

extension ServiceManager {
    /// The manager that started this process; one that does not listen when it was started from a shell.
    static func ofThisProcess() throws -> ServiceManager {
        try ServiceManager(environment: ProcessInfo.processInfo.environment, processID: getpid())
    }
}
