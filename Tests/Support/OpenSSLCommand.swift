import Foundation

/// The `openssl` command line, a second implementation to compare ours with.
package enum OpenSSLCommand {
    package struct Failed: Error {
        package let arguments: [String]
        package let output: String
    }

    @discardableResult
    package static func run(_ arguments: String...) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitForEnd()
        let text = String(decoding: output, as: UTF8.self)
        guard process.terminationStatus == 0 else { throw Failed(arguments: arguments, output: text) }
        return text
    }

    /// Creates a .p8 file in the format of Apple's.
    package static func makeSigningKey(at path: String) throws {
        try run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)
    }
}
