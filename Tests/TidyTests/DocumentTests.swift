import Foundation
import Testing

/// What the pages name must be there: a renamed file or type takes its page along.
struct DocumentTests {
    private static let root = `Tidiness`.root

    private static func pages() throws -> [URL] {
        let found = FileManager.default.enumerator(
            at: root.appending(path: "Sources"), includingPropertiesForKeys: nil)
        let pages = (found?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "md" }
        try #require(pages.count >= 5)
        return pages + [root.appending(path: "README.md")]
    }

    @Test func `every file and folder that a page names is there`() throws {
        var named = 0
        for page in try Self.pages() {
            let target = page.path.split(separator: "/").drop { $0 != "Sources" }.dropFirst().first.map(String.init)
            for match in try String(contentsOf: page, encoding: .utf8).matches(of: /`([\w+.-]+(?:\/[\w+.-]+)+)`/) {
                let path = String(match.1)
                guard path.first?.isUppercase == true, path.hasSuffix(".swift") || path.hasSuffix(".md") else {
                    continue
                }
                named += 1
                let places = [path, "Sources/\(path)"] + (target.map { ["Sources/\($0)/\(path)"] } ?? [])
                let isThere = places.contains {
                    FileManager.default.fileExists(atPath: Self.root.appending(path: $0).path)
                }
                #expect(isThere, "\(page.lastPathComponent) names \(path)")
            }
        }
        #expect(named >= 20)
    }

    @Test func `every link of a page leads to a file, a heading or another site`() throws {
        var followed = 0
        for page in try Self.pages() {
            let text = try String(contentsOf: page, encoding: .utf8)
            for match in text.matches(of: /\]\(([^)\s]+)\)/) where !match.1.hasPrefix("https://") {
                followed += 1
                let parts = match.1.split(separator: "#", omittingEmptySubsequences: false).map(String.init)
                // The program generates these pages of the guide; the tests of the guide follow links to them.
                if parts[0].hasPrefix("Reference"), page.path.contains("Guide.docc") { continue }
                let file = parts[0].isEmpty ? page : page.deletingLastPathComponent().appending(path: parts[0])
                #expect(FileManager.default.fileExists(atPath: file.path), "\(page.lastPathComponent): \(match.1)")
                guard parts.count > 1, let target = try? String(contentsOf: file, encoding: .utf8) else { continue }
                #expect(Self.anchors(of: target).contains(parts[1]), "\(page.lastPathComponent): \(match.1)")
            }
        }
        #expect(followed >= 15)
    }

    private static func anchors(of text: String) -> [String] {
        text.split(separator: "\n").filter { $0.hasPrefix("#") }
            .map { $0.drop { $0 == "#" || $0 == " " }.lowercased().replacing(" ", with: "-") }
    }

    @Test func `every test that a page names is there`() throws {
        let found = FileManager.default.enumerator(
            at: Self.root.appending(path: "Tests"), includingPropertiesForKeys: nil)
        // A suite has the name of its file, or of its target's folder.
        let suites = Set(
            (found?.allObjects ?? []).compactMap { ($0 as? URL)?.deletingPathExtension().lastPathComponent })
        var named = 0
        for page in try Self.pages() {
            for match in try String(contentsOf: page, encoding: .utf8).matches(of: /\b([A-Z]\w+Tests)\b/) {
                named += 1
                #expect(suites.contains(String(match.1)), "\(page.lastPathComponent) names \(match.1)")
            }
        }
        #expect(named >= 15)
    }

    /// A principle whose place is gone has no place.
    @Test func `every place that the principles name is declared`() throws {
        let page = Self.root.appending(path: "Sources/Campaigns/Campaigns.docc/Principles.md")
        let rows = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("| ") }
        let found = FileManager.default.enumerator(
            at: Self.root.appending(path: "Sources"), includingPropertiesForKeys: nil)
        let text = try (found?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
            .map { try String(contentsOf: $0, encoding: .utf8) }.joined(separator: "\n")
        let declared = Set(
            text.matches(of: /\b(?:class|struct|enum|protocol|actor|func|var|let|case|typealias) (\w+)/).map {
                String($0.1)
            })
        var named = 0
        for row in rows {
            for match in row.matches(of: /`([A-Za-z][\w.]*)`/) {
                let parts = match.1.split(separator: ".").map(String.init)
                // A file, a key of the configuration and `run` are checked elsewhere, or are no places.
                guard parts[0].first?.isUppercase == true, parts.last != "swift" else { continue }
                named += 1
                for part in parts { #expect(declared.contains(part), "Principles.md names \(match.1)") }
            }
            // Each row has a check.
            guard row.contains("`") else { continue }
            #expect(row.contains(/\b[A-Z]\w+Tests\b/), "no test in: \(row)")
        }
        #expect(named >= 40)
    }

    @Test func `every symbol that a page links is declared`() throws {
        let sources = FileManager.default.enumerator(
            at: Self.root.appending(path: "Sources"), includingPropertiesForKeys: nil)
        let text = try (sources?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
            .map { try String(contentsOf: $0, encoding: .utf8) }.joined()
        let targets = ["Sending", "Campaigns", "APNs"]
        for page in try Self.pages() {
            for match in try String(contentsOf: page, encoding: .utf8).matches(of: /``([A-Z]\w+)/) {
                let name = String(match.1)
                let isDeclared = ["struct", "enum", "class", "protocol", "typealias"].contains {
                    text.contains("\($0) \(name)")
                }
                #expect(isDeclared || targets.contains(name), "\(page.lastPathComponent) links \(name)")
            }
        }
    }
}
