import GRDB
import RelationalStore

/// Reads whether tokens are proven. Consecutive queries for devices of one block cost one look-up.
struct TokenProofs {
    private let bits: RowStatement
    private let later: RowStatement
    private var known: (block: Int64, bits: Int64)?

    init(_ db: Database) throws {
        bits = try RowStatement(db, "SELECT bits FROM proven_first WHERE block = :block")
        later = try RowStatement(
            db, "SELECT 1 FROM proven_token WHERE device_id = :device AND token_generation = :generation")
    }

    mutating func isProven(_ device: Int64, generation: Int) throws -> Bool {
        guard generation == ProvenTokens.first else { return try isProven(device, laterGeneration: generation) }
        let block = ProvenTokens.block(of: device)
        if known?.block != block { known = (block, try bits(of: block)) }
        return (known?.bits ?? 0) & ProvenTokens.bits(of: device) != 0
    }

    private func bits(of block: Int64) throws -> Int64 {
        defer { bits.reset() }
        try bits.bind(block, bits.parameter(":block"))
        return try bits.step() ? bits.int64(0) : 0
    }

    private func isProven(_ device: Int64, laterGeneration generation: Int) throws -> Bool {
        defer { later.reset() }
        try later.bind(device, later.parameter(":device"))
        try later.bind(Int64(generation), later.parameter(":generation"))
        return try later.step()
    }

    /// Records the proofs.
    static func record(_ proofs: NewProofs, _ db: Database) throws {
        try record(proofs.blocks, db)
        for token in proofs.later { try record(token.device, token.generation, db) }
    }

    private static func record(_ blocks: [(block: Int64, bits: Int64)], _ db: Database) throws {
        guard !blocks.isEmpty else { return }
        let insertion = try RowStatement(
            db, "INSERT INTO proven_first (block, bits) VALUES (:block, :bits) \(ProvenTokens.gainsBits)")
        let (block, bits) = (insertion.parameter(":block"), insertion.parameter(":bits"))
        for row in blocks {
            try insertion.bind(row.block, block)
            try insertion.bind(row.bits, bits)
            try insertion.run()
        }
    }

    /// Records nothing if the device is no longer stored, because no deletion would remove the row.
    private static func record(_ device: Int64, _ generation: Int, _ db: Database) throws {
        let insertion = try RowStatement(
            db,
            """
            INSERT INTO proven_token (device_id, token_generation) SELECT id, :generation FROM device WHERE id = :device
            \(ProvenTokens.keepsLast)
            """)
        try insertion.bind(device, insertion.parameter(":device"))
        try insertion.bind(Int64(generation), insertion.parameter(":generation"))
        try insertion.run()
    }
}
