import Store

/// The tokens that APNs has accepted a push for.
///
/// Most devices keep their first token. So `proven_first` has one bit for each device, and 64 devices per row. A bit
/// is set if the device's token of generation 1 is proven. `proven_token` has a row for each device with a later
/// proven token, with the latest proven generation.
///
/// A deleted device keeps its bit. The bit then means nothing, because a store never uses the id of a device again.
package enum ProvenTokens {
    /// The generation whose proofs are stored as bits.
    package static let first = 1

    /// Returns the number of the row that has the bit of a device.
    package static func block(of device: Int64) -> Int64 { device >> 6 }

    /// Returns the value of a row in which only the bit of this device is set.
    package static func bits(of device: Int64) -> Int64 { 1 << (device & 63) }

    /// Returns an expression for `block(of:)`.
    package static func block(of device: String) -> String { "\(device) >> 6" }

    /// Returns an expression for the bit of a device in its row: 0 or 1.
    package static func bit(of device: String) -> String { "(bits >> CAST(\(device) & 63 AS INTEGER)) & 1" }

    /// Returns the condition that the current token of a row of `device` is proven.
    static var isCurrent: String {
        """
        CASE WHEN device.token_generation = \(first)
            THEN EXISTS (
                SELECT 1 FROM proven_first WHERE block = \(block(of: "device.id")) AND \(bit(of: "device.id")) = 1
            )
            ELSE EXISTS (
                SELECT 1 FROM proven_token
                WHERE proven_token.device_id = device.id
                    AND proven_token.token_generation = device.token_generation
            )
        END
        """
    }

    /// Returns an expression for the latest proven generation of a device, or 0 if there is none. `proven_token` and
    /// `proven_first` are joined to the device.
    static func last(of device: String) -> String {
        "coalesce(proven_token.token_generation, \(bit(of: device)), 0)"
    }

    /// Returns the condition that a row of `proven_first` has a set bit of a device with a higher id.
    static func isBeyond(_ last: String) -> String {
        """
        block > \(block(of: last))
            OR (block = \(block(of: last)) AND (\(last) & 63) < 63 AND bits >> CAST((\(last) & 63) + 1 AS INTEGER) <> 0)
        """
    }

    /// Returns an expression for the lowest id of the row's block that is higher than this one.
    static func firstBeyond(_ last: String) -> String {
        "CASE WHEN block = \(block(of: last)) THEN \(last) + 1 ELSE block << 6 END"
    }

    /// The suffix of an INSERT into `proven_first`. An existing row gains bits and loses none.
    package static let gainsBits = """
        ON CONFLICT (block) DO UPDATE SET bits = proven_first.bits | excluded.bits
            WHERE proven_first.bits | excluded.bits <> proven_first.bits
        """

    /// The suffix of an INSERT into `proven_token`. An existing row keeps the latest proven generation.
    package static let keepsLast = """
        ON CONFLICT (device_id) DO UPDATE SET token_generation = excluded.token_generation
            WHERE proven_token.token_generation < excluded.token_generation
        """
}

/// Proofs that one transaction records.
package struct NewProofs {
    /// The set bits by row.
    private var bits: [Int64: Int64] = [:]
    /// The tokens of later generations, by device.
    package private(set) var later: [(device: Int64, generation: Int)] = []

    package init() {}

    package mutating func add(device: Int64, generation: Int) {
        guard generation == ProvenTokens.first else { return later.append((device, generation)) }
        bits[ProvenTokens.block(of: device), default: 0] |= ProvenTokens.bits(of: device)
    }

    /// The rows of `proven_first`, in the order in which every transaction locks them.
    package var blocks: [(block: Int64, bits: Int64)] {
        bits.sorted { $0.key < $1.key }.map { (block: $0.key, bits: $0.value) }
    }
}
