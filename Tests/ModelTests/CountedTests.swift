import Model
import Testing

struct CountedTests {
    @Test(arguments: [(0, "0 devices"), (1, "1 device"), (2, "2 devices"), (1_234, "1,234 devices")])
    func `a count stands with its noun`(count: Int, expected: String) {
        #expect(count.counted("device") == expected)
    }

    @Test(arguments: [
        (0, 1_000_000, "0.0 %"), (1, 1_000_000, "0.1 %"), (1, 3, "33.3 %"), (999_999, 1_000_000, "99.9 %"),
        (1_000_000, 1_000_000, "100.0 %"), (1, 0, ""),
    ])
    func `a share is 0 or 100 percent only if it is exact`(count: Int, whole: Int, expected: String) {
        #expect(count.share(of: whole) == expected)
        let text = Proportion(count, of: whole).percentText
        #expect(text == (expected.isEmpty ? nil : expected.replacing(".0 %", with: " %")))
    }

    @Test func `a noun may have a plural of its own, and a verb`() {
        #expect(1.counted("delivery is", "deliveries are") == "1 delivery is")
        #expect(3.counted("delivery is", "deliveries are") == "3 deliveries are")
    }
}
