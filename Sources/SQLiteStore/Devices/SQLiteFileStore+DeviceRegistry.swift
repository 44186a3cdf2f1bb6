import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func importDevices(
        _ records: [DeviceRecord], now: Timestamp, dryRun: Bool
    ) async throws -> ImportCounts {
        let path = path
        return try await writeImporting { db in
            guard try DeferredIndexes(db).names().isEmpty else { throw StoreError.busy(path: path) }
            guard dryRun else { return try Self.register(records, now: now, db) }
            var counts = ImportCounts()
            try db.inSavepoint {
                counts = try Self.register(records, now: now, db)
                return .rollback
            }
            return counts
        }
    }

    private static func register(_ records: [DeviceRecord], now: Timestamp, _ db: Database) throws -> ImportCounts {
        var registration = try DeviceRegistration(db, now: now)
        var counts = ImportCounts()
        for record in records { counts.add(try registration.register(record).effect) }
        try registration.finish()
        return counts
    }

    package func registerDevices(
        _ records: [DeviceRecord], reading: Bool, now: Timestamp
    ) async throws -> [RegisteredDevice] {
        let path = path
        return try await write { db in
            guard try DeferredIndexes(db).names().isEmpty else { throw StoreError.busy(path: path) }
            var registration = try DeviceRegistration(db, now: now)
            var registered: [RegisteredDevice] = []
            registered.reserveCapacity(records.count)
            for record in records {
                let (effect, id) = try registration.register(record)
                // Read the device now: a later record may merge it into another device.
                let device = reading ? try StoredDevices(db).find(id) : nil
                registered.append(RegisteredDevice(effect: effect, device: device))
            }
            try registration.finish()
            return registered
        }
    }
}
