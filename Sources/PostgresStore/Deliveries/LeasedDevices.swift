import Model
import RelationalStore
import Store

/// The devices of a lease's deliveries, read by scans over ranges of ids.
///
/// This code joins them with the deliveries. In a join in SQL, the planner would choose the order, and its worst
/// plan costs ten times as much.
struct LeasedDevices {
    private let devices: PostgresRows
    private let proofs: TokenProofs
    private let fields: Int
    private var place = 0

    /// - Parameter ids: the ids of the devices, ascending.
    init(_ db: PostgresSession, _ request: LeaseRequest, of ids: [Int64]) throws {
        let fields = FieldColumns(request.fields)
        let span = DeviceSpan(ids)
        let bounds: [any PostgresValue] = span.map { [$0.first, $0.last] } ?? [ids]
        let rows = try db.pipeline { batch in
            batch.add(
                """
                SELECT id, status, token_generation, token, locale, badge, environment,
                    \(request.quiet == nil ? "NULL::text" : "time_zone"),
                    \(request.caps?.rule.asksForUser == true ? "user_id" : "NULL::text")\(fields.sql(parameter: 1))
                FROM device WHERE id \(span == nil ? "= ANY ($2)" : "BETWEEN $2 AND $3") ORDER BY id
                """, values: [fields.keys] + bounds)
            TokenProofs.add(of: ids, isDense: span != nil, to: &batch)
        }
        devices = rows[0]
        let renewed = try devices.filter { try $0.int(2) != ProvenTokens.first }.map { try $0.int64(0) }
        proofs = try TokenProofs(db, bits: rows[1], renewed: renewed)
        self.fields = request.fields.count
    }

    /// Returns a device, or `nil` if it is no longer stored. Call it with ascending ids.
    mutating func next(_ id: Int64) throws -> Device? {
        while place < devices.endIndex, try devices[place].int64(0) < id { place += 1 }
        guard place < devices.endIndex, try devices[place].int64(0) == id else { return nil }
        let generation = try devices[place].int(2)
        return Device(
            generation: generation, isProven: proofs.isProven(id, generation: generation), fieldCount: fields,
            row: devices[place])
    }

    struct Device {
        let generation: Int
        /// Whether APNs has accepted a push for the device's current token.
        let isProven: Bool
        fileprivate let fieldCount: Int
        fileprivate let row: PostgresRow

        var status: DeviceStatus { get throws { DeviceStatus(code: try row.int64(1)) } }
        var token: [UInt8] { get throws { try row.bytes(3) } }
        var locale: String? { get throws { try row.textOrNil(4) } }
        var badge: Int { get throws { try row.int(5) } }
        var environment: PushEnvironment { get throws { PushEnvironment(code: try row.int64(6)) } }
        /// Read only if quiet hours need it.
        var zone: String? { get throws { try row.textOrNil(7) } }
        /// Read only if frequency caps need it.
        var user: String? { get throws { try row.textOrNil(8) } }
        var fields: [String?] { get throws { try (9..<9 + fieldCount).map { try row.textOrNil($0) } } }
    }
}
