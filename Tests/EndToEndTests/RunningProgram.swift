import APNsSimulator
import Foundation
import TestSupport
import Testing

/// A `fanfare` that goes on while the test looks at it; killed with its last reference.
final class RunningProgram {
    private let process = Process()
    private let outputFile: URL
    private let errorFile: URL

    init(_ arguments: [String], in folder: TemporaryDirectory, environment: [String: String] = [:]) throws {
        outputFile = try folder.newFile()
        errorFile = try folder.newFile()
        process.executableURL = Program.url
        process.arguments = arguments
        process.currentDirectoryURL = folder.url
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: outputFile)
        process.standardError = try FileHandle(forWritingTo: errorFile)
        try process.run()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    func signal(_ number: Int32) {
        kill(process.processIdentifier, number)
    }

    var errors: String { (try? String(contentsOf: errorFile, encoding: .utf8)) ?? "" }

    var output: String { (try? String(contentsOf: outputFile, encoding: .utf8)) ?? "" }

    func finish() throws -> Program.Result {
        process.waitUntilExit()
        return Program.Result(
            status: process.terminationStatus, output: try String(contentsOf: outputFile, encoding: .utf8),
            errors: errors)
    }

    /// Returns once the condition holds, and throws when the program ends before.
    func wait(until condition: () -> Bool) throws {
        while !condition() {
            try #require(process.isRunning, "ended early: \(errors)")
            usleep(2_000)
        }
    }
}
