package import Foundation
package import Testing

/// The ways in which statements reach rows of large tables, as a golden file has them: each statement on one line, and the
/// scans of its plan behind it.
package struct StatementPlans {
    private var scans: [String: Set<String>] = [:]

    package init() {}

    /// - Parameters:
    ///   - statement: in any layout.
    ///   - found: the scans of its plan; a statement without one is left out.
    package mutating func add(_ statement: String, _ found: [String]) {
        guard !found.isEmpty else { return }
        let lines = statement.split(separator: "\n").map { line in
            String(line.firstRange(of: "-- ").map { line[..<$0.lowerBound] } ?? line)
        }
        let words = lines.joined(separator: " ").split(whereSeparator: \.isWhitespace).map(String.init)
            .joined(separator: " ")
        scans[words, default: []].formUnion(found)
    }

    private var text: String {
        scans.sorted { $0.key < $1.key }.map { statement, scans in
            statement + "\n" + scans.sorted().map { "    \($0)\n" }.joined()
        }.joined(separator: "\n")
    }

    /// Compares the plans with a golden file. `PLANS_FOLDER` names a folder for the new file, to be compared by a person.
    package func expect(_ golden: URL, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let expected = (try? String(contentsOf: golden, encoding: .utf8)) ?? ""
        guard text != expected else { return }
        let (old, new) = (Set(expected.split(separator: "\n")), text.split(separator: "\n"))
        let differing = new.filter { !old.contains($0) } + old.subtracting(new).map { "- \($0)" }.sorted()
        Issue.record(
            "plans differ from \(golden.lastPathComponent):\n\(differing.prefix(20).joined(separator: "\n"))",
            sourceLocation: sourceLocation)
        if let folder = ProcessInfo.processInfo.environment["PLANS_FOLDER"] {
            try text.write(toFile: "\(folder)/\(golden.lastPathComponent)", atomically: true, encoding: .utf8)
        }
    }
}
