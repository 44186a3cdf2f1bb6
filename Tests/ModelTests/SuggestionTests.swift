import Model
import Testing

struct SuggestionTests {
    static let rows: [(word: String, nearest: String?)] = [
        ("audiance", "audience"), ("AUDIENCE", "audience"), ("prioirty", "priority"), ("topik", "topic"),
        ("colour", nil), ("x", nil), ("guard", "guards"), ("", nil),
    ]

    @Test(arguments: rows) func `the nearest word is suggested, and none that is far`(word: String, nearest: String?) {
        let words = ["audience", "topic", "priority", "template", "guards"]
        #expect(Suggestion.nearest(to: word, among: words) == nearest)
    }

    @Test func `of two equally near words the first in the alphabet is suggested`() {
        #expect(Suggestion.nearest(to: "bat", among: ["cat", "bar"]) == "bar")
    }
}
