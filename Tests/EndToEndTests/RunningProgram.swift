import APNsSimulator
import Foundation
import GRDB
import TestSupport
import Testing

/// A `fanfare` that goes on while the test looks at it; killed with its last reference.
final class RunningProgram {
    /// The longest time between two looks.
    private static let quietMax: Duration = .seconds(1)

    private let process = Process()
    private let outputFile: URL
    private let errorFile: URL
    private let changes: FileChanges

    /// - Parameter program: the built one, unless another is named, which may start it.
    init(
        _ arguments: [String], in folder: TemporaryDirectory, environment: [String: String] = [:],
        program: URL = Program.url
    ) throws {
        outputFile = try folder.newFile()
        errorFile = try folder.newFile()
        let changes = try FileChanges(
            folder: folder.path,
            names: [
                outputFile.lastPathComponent, errorFile.lastPathComponent, "fanfare.sqlite-wal", RequestSignal.name,
            ])
        self.changes = changes
        process.executableURL = program
        process.arguments = arguments
        process.currentDirectoryURL = folder.url
        process.environment = Program.environment(in: folder, environment)
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: outputFile)
        process.standardError = try FileHandle(forWritingTo: errorFile)
        process.terminationHandler = { _ in changes.raise() }
        try process.run()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    func signal(_ number: Int32) {
        kill(process.processIdentifier, number)
    }

    var pid: Int32 { process.processIdentifier }

    /// By a signal; returns when it stands still.
    func stop() {
        signal(SIGSTOP)
        var info = siginfo_t()
        while waitid(P_PID, id_t(pid), &info, WSTOPPED | WNOWAIT) < 0, errno == EINTR {}
    }

    /// By a signal, where it keeps nobody else from the store in this file: within a transaction it would do so for as long
    /// as it stands still.
    func stop(outsideTransactionsOf path: String) throws {
        // Without a wait for the lock, which nobody would give back.
        let queue = try DatabaseQueue(path: path)
        try Patience.wait(for: "a moment without a transaction of it") {
            stop()
            let isFree = queue.inDatabase { db in (try? db.execute(sql: "BEGIN IMMEDIATE; ROLLBACK")) != nil }
            // It goes on until the next look, and comes out of its transaction.
            if !isFree { signal(SIGCONT) }
            return isFree
        }
        try queue.close()
    }

    var errors: String { (try? String(contentsOf: errorFile, encoding: .utf8)) ?? "" }

    var output: String { (try? String(contentsOf: outputFile, encoding: .utf8)) ?? "" }

    /// Waits for the end of the program, which is killed after `limit`.
    func finish(within limit: Duration = Process.longest) throws -> Program.Result {
        process.waitForEnd(killingAfter: limit)
        return Program.Result(
            status: process.terminationStatus, output: try String(contentsOf: outputFile, encoding: .utf8),
            errors: errors)
    }

    /// Returns once the condition holds. Throws when the program ends before, or after `limit`.
    ///
    /// Looks again whenever the program has written something, the store has changed or the simulator was asked
    /// something; and after some time all the same, for what is true only a moment after the last of these.
    func wait(atMost limit: Duration = Process.longest, until condition: () -> Bool) throws {
        let deadline = ContinuousClock.now + limit
        while true {
            // Before the look: what the program does as its last may be what is waited for.
            let isRunning = process.isRunning
            if condition() { return }
            try #require(isRunning, "ended early with \(process.terminationStatus): \(errors)\(output)")
            try #require(
                ContinuousClock.now < deadline, "still not so after \(limit): \(errors)\(output)")
            do {
                try changes.wait(until: min(deadline, ContinuousClock.now + Self.quietMax))
            } catch is FileChanges.Overdue {
                continue
            }
        }
    }
}

/// A file in the installation's folder that grows by a byte with every request the simulator judges.
final class RequestSignal: Sendable {
    static let name = "requests"

    private let file: Int32

    init(in folder: TemporaryDirectory) throws {
        file = open(folder.file(Self.name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }

    deinit { close(file) }

    /// For the simulator, which looks at its clock once a request, before it counts it: wait for no count that only the
    /// last request brings.
    var clock: @Sendable () -> Int64 {
        {
            _ = [UInt8(1)].withUnsafeBytes { write(self.file, $0.baseAddress, 1) }
            return SimulatorOptions.systemMilliseconds()
        }
    }
}
