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

    /// Runs to the end; without a terminal, with nothing on standard input.
    ///
    /// - Parameter program: the built one, unless another is named.
    static func run(
        _ arguments: [String], in folder: TemporaryDirectory, environment: [String: String] = [:], program: URL = url
    ) throws -> Result {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.currentDirectoryURL = folder.url
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let outputFile = try folder.newFile()
        let errorFile = try folder.newFile()
        process.standardOutput = try FileHandle(forWritingTo: outputFile)
        process.standardError = try FileHandle(forWritingTo: errorFile)
        try process.run()
        process.waitUntilExit()
        return Result(
            status: process.terminationStatus, output: try String(contentsOf: outputFile, encoding: .utf8),
            errors: try String(contentsOf: errorFile, encoding: .utf8))
    }
}
