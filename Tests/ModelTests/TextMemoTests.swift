import Model
import Testing

/// What is read again and again is read once, and never shown for another text.
struct TextMemoTests {
    private struct Unreadable: Error {}

    @Test func `a text is read once at each place, and one that has changed is read anew`() {
        let memo = TextMemo<String>()
        var reads = 0
        func read(_ text: String, at place: String = "") -> String {
            memo.value(of: text, at: place) {
                reads += 1
                return "\(place): \(text)"
            }
        }
        #expect(read("old") == ": old" && read("old") == ": old" && reads == 1)
        #expect(read("new") == ": new" && reads == 2)
        #expect(read("old", at: "a.yaml") == "a.yaml: old" && read("old", at: "b.yaml") == "b.yaml: old" && reads == 4)
        #expect(read("old") == ": old" && reads == 4)
    }

    @Test func `a text whose letters are made up otherwise is another one`() {
        let memo = TextMemo<Int>()
        #expect(memo.value(of: "Z\u{FC}rich") { 1 } == 1)
        #expect(memo.value(of: "Zu\u{308}rich") { 2 } == 2)
        #expect(memo.value(of: "x", at: "\u{212B}") { 3 } == 3 && memo.value(of: "x", at: "\u{C5}") { 4 } == 4)
    }

    @Test func `what cannot be read is tried again`() throws {
        let memo = TextMemo<Int>()
        #expect(throws: Unreadable.self) { try memo.value(of: "x") { throw Unreadable() } }
        #expect(memo.value(of: "x") { 7 } == 7)
    }

    @Test func `it holds no more text than it may, and none that would fill it alone`() {
        let memo = TextMemo<Int>(bytesMax: 160)
        let texts = (10..<26).map { "text of \($0)" }
        for text in texts { _ = memo.value(of: text) { 1 } }
        for text in texts { #expect(memo.value(of: text) { 2 } == 1) }
        // Ten bytes each are all it may hold: it begins again.
        #expect(memo.value(of: "one more") { 3 } == 3)
        #expect(memo.value(of: texts[0]) { 4 } == 4)
        for number in 5...6 { #expect(memo.value(of: "longer than a sixteenth") { number } == number) }
    }
}
