import Foundation
import Model

/// Holds a function over text of others to a cost that grows with the text's size and no faster.
///
/// It compares the processor time of this thread for a text and for one eight times as large: a function of linear cost
/// takes about 8 times as long, one of quadratic cost 64 times. Other work of the machine does not count, and the smallest of
/// several measurements is taken, so that a slow or busy machine changes nothing.
package enum LinearCost {
    private static let growth = 8
    /// Between 8 and 64.
    private static let growthMax = 24.0
    /// A shorter time says nothing: it is that of the first page of memory, or of a cache.
    private static let secondsMin = 0.02
    /// Far above what any parser needs in a debug build.
    private static let secondsPerByteMax = 100e-6
    private static let repeats = 5
    private static let bytes = 2048

    /// A text as it is repeated: `head`, `unit` until there are enough bytes, `tail`.
    package struct Pattern: Sendable, CustomStringConvertible {
        var head: String
        var unit: String
        var tail: String

        package init(_ unit: String, head: String = "", tail: String = "") {
            (self.head, self.unit, self.tail) = (head, unit, tail)
        }

        /// Made of a few fragments by chance, the same for the same seed.
        package init(of fragments: [String], seed: UInt64, head: String = "", tail: String = "") {
            var random = SeededGenerator(seed: seed)
            let count = Int.random(in: 1...5, using: &random)
            let unit = (0..<count).map { _ in fragments.randomElement(using: &random) ?? "x" }.joined()
            self.init(unit, head: head, tail: tail)
        }

        package func text(bytes: Int) -> String {
            head + String(repeating: unit, count: max(1, bytes / max(1, unit.utf8.count))) + tail
        }

        package var description: String { String(reflecting: head + unit + "…" + tail) }
    }

    /// Ten seeds; with `FANFARE_FUZZ_SECONDS` in the environment more, for as many seconds in each test.
    package static func seeds(_ body: (UInt64) throws -> Void) rethrows {
        let extra = ProcessInfo.processInfo.environment["FANFARE_FUZZ_SECONDS"].flatMap(Double.init) ?? 0
        let end = Date(timeIntervalSinceNow: extra)
        var seed: UInt64 = 1
        while seed <= 10 || extra > 0 && Date() < end {
            try body(seed)
            seed += 1
        }
    }

    /// What is wrong with the cost of a function for a pattern; `nil` if nothing is.
    ///
    /// - Parameter bytesMax: the most that the function is ever given. A cost that is too small to be measured is looked at for
    ///   twice as much text, up to this.
    package static func fault(
        of pattern: Pattern, upTo bytesMax: Int = 16_384, _ body: (String) -> Void
    ) -> String? {
        var bytes = bytes
        var large = pattern.text(bytes: bytes * growth)
        while bytes * growth * 2 <= bytesMax, min(seconds { body(large) }, seconds { body(large) }) < secondsMin {
            bytes *= 2
            large = pattern.text(bytes: bytes * growth)
        }
        let small = pattern.text(bytes: bytes)
        var (least, most) = (Double.infinity, Double.infinity)
        for _ in 0..<repeats {
            most = min(most, seconds { body(large) })
            if most < secondsMin { return nil }
            least = min(least, seconds { body(small) })
            if most <= growthMax * least, most <= secondsPerByteMax * Double(large.utf8.count) { return nil }
        }
        return "\(pattern): \(least) s for \(small.utf8.count) bytes, \(most) s for \(large.utf8.count)"
    }

    private static func seconds(_ body: () -> Void) -> Double {
        let start = processorTime
        body()
        return processorTime - start
    }

    private static var processorTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
