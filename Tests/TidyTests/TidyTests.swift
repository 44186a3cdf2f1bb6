import Foundation
import Testing

/// The project's own rules, checked like everything else.
@Suite(.timeLimit(.minutes(10))) struct `Tidiness` {
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func swiftFiles(under folder: String) throws -> [URL] {
        let found = FileManager.default.enumerator(at: root.appending(path: folder), includingPropertiesForKeys: nil)
        let files = (found?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
        try #require(!files.isEmpty)
        return files
    }

    @Test func `swift format has nothing to say`() throws {
        let lint = Process()
        lint.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        lint.arguments = ["swift", "format", "lint", "--strict", "--recursive", "Sources", "Tests", "Package.swift"]
        lint.currentDirectoryURL = Self.root
        let output = Pipe()
        lint.standardError = output
        lint.standardOutput = output
        try lint.run()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        lint.waitUntilExit()
        #expect(lint.terminationStatus == 0, "\(said.prefix(4000))")
    }

    @Test(arguments: ["Sources", "Tests"])
    func `no source file passes 400 lines`(folder: String) throws {
        for file in try Self.swiftFiles(under: folder) {
            let lines = try String(contentsOf: file, encoding: .utf8).split(
                separator: "\n", omittingEmptySubsequences: false
            ).count
            #expect(lines <= 401, "\(file.lastPathComponent) has \(lines - 1) lines")
        }
    }

    @Test func `the README stays under 250 lines`() throws {
        let text = try String(contentsOf: Self.root.appending(path: "README.md"), encoding: .utf8)
        #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 251)
    }

    /// Pointers are for the targets that wrap C.
    @Test func `no pointer leaves the targets that wrap C`() throws {
        let outside = ["Model", "CampaignFiles", "Engine", "fanfare"]
        for file in try outside.flatMap({ try Self.swiftFiles(under: "Sources/\($0)") }) {
            let text = try String(contentsOf: file, encoding: .utf8)
            #expect(!text.contains("UnsafeMutable") && !text.contains("UnsafeRaw"), "\(file.path)")
            #expect(!text.contains("@unchecked Sendable"), "\(file.path)")
        }
    }

    @Test func `the top level holds what was agreed and nothing else`() throws {
        let allowed: Set = [
            "Package.swift", "Sources", "Tests", "campaigns", "templates", "systemd", "README.md", "Package.resolved",
        ]
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.root.path)
        #expect(Set(names.filter { !$0.hasPrefix(".") }).isSubset(of: allowed))
    }
}
