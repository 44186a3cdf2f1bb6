package import Model

/// The plain acceptances among the outcomes of one lease, recorded with one statement. In a healthy run, nearly all
/// outcomes are plain acceptances. A statement for each, or a list of them, costs more than the rest of the recording.
///
/// A blob with one byte for each id from the first device to the last selects the devices and gives their locales.
/// The statement changes no other row in that range.
package struct AcceptedRange {
    /// The minimum number of acceptances. Below it, one statement for each is no slower.
    private static let countMin = 16
    /// The maximum number of ids in the range for each acceptance. The acceptances of retries may be too scattered.
    private static let sparsenessMax = 8
    /// The highest locale index that fits in a device's byte. The byte is 0 if the device is not selected, 1 if it
    /// has no locale, and otherwise its locale index plus 2.
    private static let localeIndexMax = 253

    package let leaseNumber: Int
    package let attempt: Int
    package let generation: Int
    package let first: Int64
    /// The number of acceptances.
    package let count: Int
    package private(set) var codes: [UInt8]

    package var last: Int64 { first + Int64(codes.count) - 1 }

    /// Returns `nil` if there are too few acceptances, or if they are too scattered.
    package init?(_ settlements: ArraySlice<Settlement>) {
        guard settlements.count >= Self.countMin, let model = settlements.first(where: Self.fits) else { return nil }
        leaseNumber = model.leaseNumber
        attempt = model.attempt
        generation = model.generation
        var first = model.device
        var last = model.device
        var count = 0
        for settlement in settlements where Self.fits(settlement) && Self.isAlike(settlement, model) {
            first = min(first, settlement.device)
            last = max(last, settlement.device)
            count += 1
        }
        guard count >= Self.countMin, last - first < Int64(count * Self.sparsenessMax) else { return nil }
        self.first = first
        codes = Array(repeating: 0, count: Int(last - first) + 1)
        for settlement in settlements where Self.fits(settlement) && Self.isAlike(settlement, model) {
            codes[Int(settlement.device - first)] = Self.code(settlement)
        }
        self.count = codes.count { $0 != 0 }
    }

    /// Returns whether the range holds this outcome. Returns `true` only once for each device.
    package mutating func take(_ settlement: Settlement) -> Bool {
        let index = Int(settlement.device - first)
        guard codes.indices.contains(index), Self.fits(settlement), settlement.leaseNumber == leaseNumber,
            settlement.attempt == attempt, settlement.generation == generation, codes[index] == Self.code(settlement)
        else { return false }
        codes[index] = 0
        return true
    }

    private static func fits(_ settlement: Settlement) -> Bool {
        settlement.isPlainAcceptance && settlement.localeIndex.map { (0...localeIndexMax).contains($0) } ?? true
    }

    private static func isAlike(_ settlement: Settlement, _ model: Settlement) -> Bool {
        settlement.leaseNumber == model.leaseNumber && settlement.attempt == model.attempt
            && settlement.generation == model.generation
    }

    private static func code(_ settlement: Settlement) -> UInt8 {
        settlement.localeIndex.map { UInt8($0 + 2) } ?? 1
    }
}

extension Settlement {
    /// The status of every plain acceptance.
    package static let acceptedStatus = 200

    /// Whether this is a plain acceptance, as nearly all outcomes of a healthy run are.
    package var isPlainAcceptance: Bool {
        status == Self.acceptedStatus && verdict == .accepted && reason == nil && !isInDoubt && !isExcused
            && effect == .none
    }
}

extension [Settlement] {
    /// The parts that belong to one lease each. Settlements are grouped by lease, so that each lease comes once or a
    /// few times.
    package var byLease: [(lease: Int64, part: ArraySlice<Settlement>)] {
        var parts: [(lease: Int64, part: ArraySlice<Settlement>)] = []
        var start = startIndex
        while start < endIndex {
            let lease = self[start].lease
            let end = self[start...].firstIndex { $0.lease != lease } ?? endIndex
            parts.append((lease, self[start..<end]))
            start = end
        }
        return parts
    }
}
