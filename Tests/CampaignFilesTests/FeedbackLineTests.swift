import Foundation
import Model
import TestSupport
import Testing

@testable import CampaignFiles

/// Reports of apps, as they arrive.
@Suite(.timeLimit(.minutes(1)))
struct FeedbackLineTests {
    private static let id = "3f0f6a1e-2c53-4a4e-9d6e-0c4d6a5b7e11"

    private func lines(_ text: String, max: Int = 1_000) throws -> [NumberedLine<FeedbackLine>] {
        try #require(try FeedbackBody.lines(Array(text.utf8), max: max))
    }

    private func fault(_ fields: String) throws -> String? {
        let line = try #require(try lines("{\"id\":\"\(Self.id)\",\(fields)}").first)
        guard case .failure(let fault) = line.value else { return nil }
        return fault.reason
    }

    @Test func `an array and lines give the same reports, with their positions`() throws {
        let opened = "{\"id\":\"\(Self.id)\",\"type\":\"opened\",\"ref\":\"AB]C\",\"at\":\"2026-11-27T10:00:00.250Z\"}"
        let played =
            "{\"id\":\"\(Self.id)\",\"type\":\"converted\",\"name\":\"played \\\"}\\\"\",\"value\":4.99,"
            + "\"installation_id\":\"i-1\",\"topic\":\"com.example.app\",\"sent_at\":null}"
        let array = try lines(" [\n\(opened) ,\n {} , \(played)]\n")
        let separate = try lines("\(opened)\n\n{}\r\n\(played)")
        #expect(array.map(\.number) == [1, 2, 3] && separate.map(\.number) == [1, 3, 4])
        for found in [array, separate] {
            let first = try found[0].value.get()
            #expect(first.kind == .opened && first.source == .reference(Array("AB]C".utf8)) && first.name == "")
            #expect(first.at == ISOTime.parse("2026-11-27T10:00:00.250Z"))
            #expect(throws: LineFault.self) { try found[1].value.get() }
            let third = try found[2].value.get()
            #expect(third.source == .installation("i-1", topic: "com.example.app"))
            #expect(third.name == "played \"}\"" && third.valueMicros == 4_990_000 && third.sentAt == nil)
        }
        #expect(try FeedbackBody.lines(Array("{}\n{}\n{}".utf8), max: 2) == nil)
        #expect(try lines("[]").isEmpty && lines("").isEmpty)
    }

    @Test(arguments: [
        ("\"type\":\"opened\"", "opened needs ref, from fanfare.r in the push"),
        ("\"type\":\"opend\",\"ref\":\"x\"", "unknown type \"opend\"; write one of arrived, opened"),
        ("\"ref\":\"x\"", "type is missing"),
        ("\"type\":\"converted\",\"ref\":\"x\"", "converted needs a name"),
        ("\"type\":\"opened\",\"name\":\"a\",\"ref\":\"x\"", "opened has no name"),
        ("\"type\":\"opened\",\"ref\":\"x\",\"value\":1", "opened has no value"),
        ("\"type\":\"converted\",\"name\":\"a\",\"ref\":\"x\",\"value\":1e10", "value is not a number from"),
        ("\"type\":\"converted\",\"name\":\"a\",\"ref\":\"x\",\"value\":\"1\"", "value is not a number"),
        ("\"type\":\"app_started\",\"topic\":\"a.b\"", "give ref, or installation_id and topic"),
        ("\"type\":\"app_started\",\"topic\":\"a.b\",\"ref\":\"x\"", "but not both"),
        ("\"type\":\"app_started\",\"topic\":\"a b\",\"installation_id\":\"i\"", "topic is not a bundle id"),
        ("\"type\":\"opened\",\"reff\":\"x\"", "unknown field \"reff\"; did you mean \"ref\"?"),
        ("\"type\":\"opened\",\"ref\":\"x\",\"at\":\"yesterday\"", "at is not a time such as"),
        ("\"type\":\"opened\",\"type\":\"arrived\",\"ref\":\"x\"", "type occurs twice"),
        ("\"type\":\"action\",\"ref\":\"x\",\"name\":\"\u{202E}a\"", "invisible characters"),
    ])
    func `a bad report says what is wrong`(fields: String, words: String) throws {
        let reason = try #require(try fault(fields))
        #expect(reason.contains(words))
    }

    @Test(arguments: ["[", "[{}", "[1]", "[{}] x", "[{}][{}]", "]", "[\"a\"]"])
    func `a broken array is refused as a whole`(text: String) {
        #expect(throws: (any Error).self) {
            let lines = try FeedbackBody.lines(Array(text.utf8), max: 9)
            for line in lines ?? [] { _ = try line.value.get() }
        }
    }

    @Test func `a number of half a million digits is refused at once`() throws {
        let digits = String(repeating: "9", count: 499_000)
        let seconds = try LinearCost.seconds {
            for field in ["value", "at", "other"] {
                let reason = try fault("\"type\":\"converted\",\"name\":\"a\",\"ref\":\"x\",\"\(field)\":\(digits)")
                #expect(reason == "a number has over 64 characters")
            }
        }
        #expect(seconds < 1)
        #expect(try lines(String(repeating: "\n", count: 499_000)).isEmpty)
    }

    @Test func `random bytes are read or refused, in linear time`() throws {
        var generator = SeededGenerator(seed: 7)
        let pieces = ["[", "]", "{", "}", "\"", "\\", ",", ":", "id", "\n", "1", "null", "é"]
        for _ in 0..<2_000 {
            let text = (0..<40).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            _ = try? FeedbackBody.lines(Array(text.utf8), max: 1_000)
        }
        let deep = String(repeating: "[", count: 400_000)
        #expect(throws: LineFault.self) { try FeedbackBody.lines(Array(deep.utf8), max: 1_000) }
    }

    @Test func `lines of a file have the numbers that an editor shows, and each refused one is written once`()
        async throws
    {
        let folder = try TemporaryDirectory()
        let id = { (number: Int) in "00000000-0000-4000-8000-00000000000\(number)" }
        let csv = """
            id,type,name,installation_id,topic

            \(id(1)),converted,played,a,com.example.app
            \(id(2)),converted,played,"b
            b",com.example.app
            \(id(3)),converted,played,c,com.example.app

            nonsense
            \(id(4)),converted,played,d,com.example.app
            """
        let jsonLines = """
            {"id":"\(id(1))","type":"converted","name":"played","installation_id":"a","topic":"com.example.app"}

            {"id":1}
            {"id":"\(id(3))","type":"converted","name":"played","installation_id":"c","topic":"com.example.app"}
            """
        for (text, size, refused, expected) in [
            (csv, 1_000, [6, 9], [4, 5, 6, 8, 9]), (csv, 1, [6, 9], [4, 5, 6, 8, 9]), (csv, 2, [], [4, 5, 8]),
            (jsonLines, 1_000, [4], [3, 4]), (jsonLines, 1, [], [3]),
        ] {
            let path = try folder.write(text, to: "reports")
            var seen: [Int] = []
            let counts = try await FeedbackFileReader(path: path, rejectsPath: folder.file("rejects.csv")).forEachBatch(
                size: size
            ) { lines in
                #expect(lines.count <= size)
                seen += lines.map(\.number)
                return Dictionary(uniqueKeysWithValues: refused.map { ($0, "no \($0)") })
                    .filter { lines.map(\.number).contains($0.key) }
            }
            #expect(seen == seen.sorted() && Set(seen).count == seen.count)
            #expect(counts.rejected == expected.count && counts.read == seen.count, "\(counts)")
            let written = try String(contentsOfFile: folder.file("rejects.csv"), encoding: .utf8)
            let rows = written.split(separator: "\n").dropFirst()
            #expect(rows.compactMap { $0.split(separator: ",").first.flatMap { Int($0) } } == expected, "\(written)")
            for number in refused { #expect(written.contains("\(number),\"no \(number)\",\""), "\(written)") }
        }
    }
}
