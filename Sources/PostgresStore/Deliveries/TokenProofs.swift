import RelationalStore

/// The proven tokens of some devices.
struct TokenProofs {
    private var bits: [Int64: Int64] = [:]
    private var later: [Int64: Int] = [:]

    /// Adds the query for the bits of these devices, which are ascending.
    static func add(of devices: [Int64], isDense: Bool, to batch: inout PostgresBatch) {
        let blocks = devices.map { ProvenTokens.block(of: $0) }
        let bounds: [any PostgresValue] = isDense ? [blocks.first ?? 0, blocks.last ?? 0] : [Set(blocks).sorted()]
        batch.add(
            "SELECT block, bits FROM proven_first WHERE block \(isDense ? "BETWEEN $1 AND $2" : "= ANY ($1)")",
            values: bounds)
    }

    /// - Parameters:
    ///   - bits: the rows that the query of ``add(of:isDense:to:)`` found.
    ///   - renewed: the devices with a token of a later generation.
    init(_ db: PostgresSession, bits rows: PostgresRows, renewed: [Int64]) throws {
        for row in rows { bits[try row.int64(0)] = try row.int64(1) }
        guard !renewed.isEmpty else { return }
        let found = try db.rows(
            "SELECT device_id, token_generation FROM proven_token WHERE device_id = ANY ($1)", renewed)
        for row in found { later[try row.int64(0)] = try row.int(1) }
    }

    func isProven(_ device: Int64, generation: Int) -> Bool {
        guard generation == ProvenTokens.first else { return later[device] == generation }
        return (bits[ProvenTokens.block(of: device)] ?? 0) & ProvenTokens.bits(of: device) != 0
    }

    /// Records the proofs. Tokens of later generations come first, because devices are locked before any block.
    static func record(_ proofs: NewProofs, _ db: PostgresSession) throws {
        if !proofs.later.isEmpty { try record(proofs.later.sorted { $0.device < $1.device }, db) }
        let blocks = proofs.blocks
        guard !blocks.isEmpty else { return }
        try db.execute(
            """
            INSERT INTO proven_first (block, bits)
            SELECT block, bits FROM unnest($1::bigint[], $2::bigint[]) AS given (block, bits) ORDER BY block
            \(ProvenTokens.gainsBits)
            """, blocks.map(\.block), blocks.map(\.bits))
    }

    /// Skips devices that are no longer stored, and locks the others against deletion until the transaction ends.
    /// Otherwise the row of a deleted device would stay for ever.
    private static func record(_ tokens: [(device: Int64, generation: Int)], _ db: PostgresSession) throws {
        try db.execute(
            """
            WITH stored AS MATERIALIZED (SELECT id FROM device WHERE id = ANY ($1) ORDER BY id FOR KEY SHARE)
            INSERT INTO proven_token (device_id, token_generation)
            SELECT device, generation FROM unnest($1::bigint[], $2::bigint[]) AS given (device, generation)
            JOIN stored ON stored.id = device ORDER BY device
            \(ProvenTokens.keepsLast)
            """, tokens.map(\.device), tokens.map(\.generation))
    }
}
