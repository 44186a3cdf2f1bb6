import Foundation
import Model

/// Checks that a function over untrusted text has a cost that is linear in the text's size.
///
/// It compares the processor time of this thread for a text and for one that is eight times as large. A function of
/// linear cost takes about 8 times as long, one of quadratic cost 64 times. It counts no work of other threads and uses
/// the smallest of several measurements, so that a slow or busy machine does not matter.
package enum LinearCost {
    private static let growth = 8
    /// The maximum factor of a linear function, between 8 and 64.
    private static let growthMax = 24.0
    /// The minimum time of a measurement. A shorter one depends on the first memory page and on caches.
    private static let secondsMin = 0.02
    /// The maximum time per byte, far above that of any parser in a debug build.
    private static let secondsPerByteMax = 100e-6
    private static let repeats = 5
    private static let bytes = 2048

    /// Characters that a reader combines with their neighbours over any distance. A step back by one `Character` reads
    /// a whole row of flags.
    package static let combining = ["🇩", "\u{301}", "👩\u{200D}", "\u{915}\u{94D}", "\u{600}", "\u{1100}"]

    /// A text that consists of `head`, repetitions of `unit` up to a size, and `tail`.
    package struct Pattern: Sendable, CustomStringConvertible {
        var head: String
        var unit: String
        var tail: String

        package init(_ unit: String, head: String = "", tail: String = "") {
            (self.head, self.unit, self.tail) = (head, unit, tail)
        }

        /// Combines random fragments. The same seed gives the same pattern.
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

    /// Calls the body with ten seeds. `FANFARE_FUZZ_SECONDS` in the environment adds more seeds, for this time in each
    /// test.
    package static func seeds(_ body: (UInt64) throws -> Void) rethrows {
        let extra = ProcessInfo.processInfo.environment["FANFARE_FUZZ_SECONDS"].flatMap(Double.init) ?? 0
        let end = Date(timeIntervalSinceNow: extra)
        var seed: UInt64 = 1
        while seed <= 10 || extra > 0 && Date() < end {
            try body(seed)
            seed += 1
        }
    }

    /// Returns a description of a cost that is not linear, or `nil` if it is linear.
    ///
    /// - Parameter bytesMax: the maximum size of the function's input. If a cost is too small to measure, the text is
    ///   doubled up to this size.
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

    /// Returns the time of the processor that `body` takes on this thread.
    package static func seconds(_ body: () throws -> Void) rethrows -> Double {
        let start = processorTime
        try body()
        return processorTime - start
    }

    private static var processorTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
