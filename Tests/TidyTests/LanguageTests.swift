import Foundation
import Testing

/// How comments are written. The check is a reminder: the aim is that a stranger understands each sentence at once.
struct LanguageTests {
    private static func comments() throws -> [(file: String, line: String)] {
        let comments = try `Tidiness`.swiftFiles(under: "Sources").flatMap { file in
            try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
                .filter { $0.drop { $0 == " " }.hasPrefix("//") }.map { (file.lastPathComponent, $0) }
        }
        try #require(comments.count > 5000)
        return comments
    }

    @Test func `no comment begins without its subject`() throws {
        let riddles = try Self.comments().filter { comment in
            comment.line.contains(#/^ *\/+ (Of|Nil:|So many|So long|Whoever|Who|That|Without)\b/#)
        }
        #expect(riddles.isEmpty, "\(riddles.prefix(10).map { "\($0.file): \($0.line)" }.joined(separator: "\n"))")
    }

    @Test func `no comment has a subject that is no one in particular`() throws {
        let vague = try Self.comments().filter { $0.line.contains(#/\b([Ww]hoever|[Nn]obody|[Ss]omebody)\b/#) }
        #expect(vague.isEmpty, "\(vague.prefix(10).map { "\($0.file): \($0.line)" }.joined(separator: "\n"))")
    }

    @Test func `no comment passes 120 columns`() throws {
        let long = try Self.comments().filter { $0.line.count > 120 }
        #expect(long.isEmpty, "\(long.prefix(10).map { "\($0.file): \($0.line)" }.joined(separator: "\n"))")
    }
}
