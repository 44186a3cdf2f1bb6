package import Model

/// The figures of attempts that settlements add to their run's counts.
package struct SettledAttempts: Sendable {
    /// The number of attempts that will be retried.
    package private(set) var retried = 0
    package private(set) var latencies = LatencyHistogram()

    package init() {}

    package var isAnything: Bool { retried != 0 || !latencies.isEmpty }

    package mutating func count(_ settlement: Settlement) {
        if settlement.isRequest, case .retry = settlement.verdict { retried += 1 }
        if settlement.latencyMicroseconds > 0 { latencies.add(microseconds: settlement.latencyMicroseconds) }
    }
}

extension DeliveryCounts {
    /// Whether a change by these counts gives a delivery an end state, or takes an end state back.
    package var ends: Bool { accepted != 0 || rejected != 0 || unknown != 0 || suppressed != 0 }

    /// Applies the outcome of one delivery in flight.
    package mutating func settle(_ verdict: Settlement.Verdict) {
        leased -= 1
        switch verdict {
        case .accepted: accepted += 1
        case .rejected: rejected += 1
        case .unknown: unknown += 1
        case .retry: pending += 1
        case .suppressed: suppressed += 1
        }
    }
}

extension LatencyHistogram {
    private static let bucketBytes = 5

    /// Five bytes for each bucket that is not empty: its number, and its count in little endian.
    package var packed: [UInt8] {
        var bytes: [UInt8] = []
        for (bucket, count) in counts.enumerated() where count > 0 {
            bytes.append(UInt8(bucket))
            bytes.append(littleEndian: count)
        }
        return bytes
    }

    /// Ignores trailing bytes that are shorter than a bucket.
    package init(packed bytes: [UInt8]) {
        self.init()
        for start in stride(from: 0, to: bytes.count - Self.bucketBytes + 1, by: Self.bucketBytes) {
            add(UInt32(littleEndian: bytes[start + 1..<start + Self.bucketBytes]), bucket: Int(bytes[start]))
        }
    }
}
