import Foundation

/// This program again, in a process of its own: CPU time and peak memory of one measurement are then its own.
enum Child {
    enum Problem: Error, CustomStringConvertible {
        case failed([String], Int32)
        case unreadable(String)

        var description: String {
            switch self {
            case .failed(let arguments, let status): "\(arguments.joined(separator: " ")) ended with \(status)"
            case .unreadable(let text): "no result: \(text)"
            }
        }
    }

    static let executable = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()

    static func result(of arguments: [String]) throws -> BenchmarkResult {
        let text = try output(of: arguments)
        do {
            return try JSONDecoder().decode(BenchmarkResult.self, from: Data(text.utf8))
        } catch {
            throw Problem.unreadable(text)
        }
    }

    static func output(of arguments: [String], executable: URL = executable) throws -> String {
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Problem.failed(arguments, process.terminationStatus) }
        return String(decoding: data, as: UTF8.self)
    }
}
