import Foundation
import Model
import Testing

/// No suite looks at the one transport and is believed about the other.
@Suite struct `Suites that open lanes` {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

    /// The text of every test file, without this one.
    private static func files() throws -> [(name: String, text: String)] {
        let found = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
        return try (found?.allObjects ?? []).compactMap { $0 as? URL }
            .filter { $0.pathExtension == "swift" && $0.lastPathComponent != "DefaultTransportTests.swift" }
            .map { ($0.lastPathComponent, try String(contentsOf: $0, encoding: .utf8)) }
    }

    @Test func `make the default one wherever they make another`() throws {
        let makers = try Self.files().filter { $0.text.contains("CurlTransport(") }
        #expect(makers.count >= 2)
        for file in makers { #expect(file.text.contains("NativeTransport("), "\(file.name)") }
    }

    @Test func `take their rows from the list of all, not from one of them`() throws {
        let lists = ["Configuration.Transport.allCases", "TransportKind.all"]
        let rows = try Self.files().filter { file in lists.contains { file.text.contains("@Test(arguments: \($0)") } }
        #expect(rows.count >= 2)
        for file in rows {
            let onlyOne = file.text.split(separator: "\n").filter {
                $0.contains("@Test(arguments: [TransportKind.")
                    || $0.contains("@Test(arguments: [Configuration.Transport.")
            }
            #expect(onlyOne.isEmpty, "\(file.name): \(onlyOne)")
        }
        #expect(Configuration.Transport.allCases.first == .native)
    }
}
