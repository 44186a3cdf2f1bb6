import Foundation
import TestSupport
import Testing

/// The built `fanfare`, run as a person runs it.
struct Program {
    struct Result {
        var status: Int32
        var output: String
        var errors: String
    }

    static let url = BuiltProgram.url

    /// A zone in which the day does not end during a test.
    static let zoneAtDay: String = {
        let hour = Int(Date().timeIntervalSince1970) / 3600 % 24
        return (5..<18).contains(hour) ? "UTC" : "Pacific/Auckland"
    }()

    /// This process's, with what a program keeps on its machine in the folder.
    static func environment(in folder: TemporaryDirectory, _ more: [String: String]) -> [String: String] {
        ProcessInfo.processInfo.environment.merging(["XDG_STATE_HOME": folder.file("state")]) { $1 }.merging(more) {
            $1
        }
    }

    /// Runs to the end; without a terminal, with nothing on standard input.
    ///
    /// - Parameter program: the built one, unless another is named.
    static func run(
        _ arguments: [String], in folder: TemporaryDirectory, environment: [String: String] = [:], program: URL = url,
        patience: Duration = Process.longest
    ) throws -> Result {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.currentDirectoryURL = folder.url
        process.environment = Self.environment(in: folder, environment)
        process.standardInput = FileHandle.nullDevice
        let outputFile = try folder.newFile()
        let errorFile = try folder.newFile()
        process.standardOutput = try FileHandle(forWritingTo: outputFile)
        process.standardError = try FileHandle(forWritingTo: errorFile)
        try process.run()
        process.waitForEnd(killingAfter: patience)
        return Result(
            status: process.terminationStatus, output: try String(contentsOf: outputFile, encoding: .utf8),
            errors: try String(contentsOf: errorFile, encoding: .utf8))
    }
}
