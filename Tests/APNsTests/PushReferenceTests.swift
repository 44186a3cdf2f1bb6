import Testing

@testable import Platform

@Suite(.timeLimit(.minutes(1)))
struct PushReferenceTests {
    private let key = PushReferenceKey(namespace: PushID(high: 0x0123_4567_89ab_cdef, low: 0xfedc_ba98_7654_3210))

    @Test func `a text stands for its run and device, and only this store's key reads it`() throws {
        let references = [
            PushReference(run: 0, device: 0), PushReference(run: 1, device: 1),
            PushReference(run: 4_294_967_295, device: 1_099_511_627_775), PushReference(run: 17, device: 10_000_000),
        ]
        let texts = try #require(key.texts(of: references))
        #expect(Set(texts).count == references.count)
        #expect(texts.allSatisfy { $0.count == PushReference.textCount })
        #expect(key.references(texts) == references)
        let other = PushReferenceKey(namespace: PushID(high: 1, low: 2))
        #expect(other.references(texts).allSatisfy { $0 == nil })
    }

    @Test func `a changed, cut, extended or swapped text is no reference`() throws {
        let text = try #require(key.texts(of: [PushReference(run: 7, device: 42)])?.first)
        let second = try #require(key.texts(of: [PushReference(run: 8, device: 42)])?.first)
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for place in text.indices {
            for letter in alphabet where letter != text[place] {
                var changed = text
                changed[place] = letter
                #expect(key.references([Array(changed)]) == [nil])
            }
        }
        #expect(key.references([Array(text.dropLast())]) == [nil])
        #expect(key.references([Array(text + [UInt8(ascii: "A")])]) == [nil])
        #expect(key.references([Array(text.prefix(11) + second.suffix(11))]) == [nil])
        #expect(key.references([[]]) == [nil])
        for _ in 0..<10_000 {
            let random = (0..<PushReference.textCount).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
            #expect(key.references([random]) == [nil])
        }
    }

    @Test func `a number out of range has no reference`() {
        #expect(key.texts(of: [PushReference(run: 1 << 32, device: 1)]) == nil)
        #expect(key.texts(of: [PushReference(run: 1, device: 1 << 40)]) == nil)
        #expect(key.texts(of: [PushReference(run: -1, device: 1)]) == nil)
    }
}
