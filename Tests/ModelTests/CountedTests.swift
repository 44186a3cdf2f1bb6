import Model
import Testing

struct CountedTests {
    @Test(arguments: [(0, "0 devices"), (1, "1 device"), (2, "2 devices"), (1_234, "1,234 devices")])
    func `a count stands with its noun`(count: Int, expected: String) {
        #expect(count.counted("device") == expected)
    }

    @Test func `a noun may have a plural of its own, and a verb`() {
        #expect(1.counted("delivery is", "deliveries are") == "1 delivery is")
        #expect(3.counted("delivery is", "deliveries are") == "3 deliveries are")
    }
}
