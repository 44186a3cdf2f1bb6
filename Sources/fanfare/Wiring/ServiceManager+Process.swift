import Foundation
import Systemd

extension ServiceManager {
    /// The manager that started this process; one that does not listen when it was started from a shell.
    static func ofThisProcess() throws -> ServiceManager {
        try ServiceManager(environment: ProcessInfo.processInfo.environment, processID: getpid())
    }

    /// Says that the files are being read again; end it with `.ready`.
    func sendReloading() throws {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let microseconds = UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000
        try send(.reloading(monotonicMicroseconds: microseconds))
    }
}
