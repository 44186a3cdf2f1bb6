package import Model
import RelationalStore
package import Store

extension PostgresDatabase {
    /// The transaction of an import. It has a long limit, because a batch may be large, and may wait for another
    /// import of the same topic.
    private static let importing = PostgresTransaction.quick.within(importTimeMax)
    private static let importTimeMax: Duration = .seconds(600)
    private static let busyWait: Duration = .seconds(1)

    /// Writes a batch of an import, or of a pruning, which may find the segments locked. Then the batch lets others of
    /// its topics go first, and starts again.
    func retryingWhileBusy<Value: Sendable>(
        _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        let end = ContinuousClock.now + Self.importTimeMax
        while true {
            do {
                return try await write(Self.importing, body)
            } catch StoreError.busy where ContinuousClock.now < end {
                try await Task.sleep(for: Self.busyWait)
            }
        }
    }

    package func importDevices(
        _ records: [DeviceRecord], now: Timestamp, dryRun: Bool
    ) async throws -> ImportCounts {
        let records = Self.stored(records)
        @Sendable func register(_ db: PostgresSession) throws -> ImportCounts {
            var registration = try DeviceRegistration(db, records, now: now, isDry: dryRun)
            var counts = ImportCounts()
            for record in records { counts.add(try registration.register(record).effect) }
            try registration.flush()
            return counts
        }
        return try await dryRun ? read(register) : retryingWhileBusy(register)
    }

    package func deviceImport() async throws -> any DeviceImport { BatchImport(store: self) }

    package func registerDevices(
        _ records: [DeviceRecord], reading: Bool, now: Timestamp
    ) async throws -> [RegisteredDevice] {
        let records = Self.stored(records)
        @Sendable func register(_ db: PostgresSession) throws -> [RegisteredDevice] {
            var registration = try DeviceRegistration(db, records, now: now)
            var registered: [(place: Int, answer: RegisteredDevice)] = []
            registered.reserveCapacity(records.count)
            for record in records {
                let (effect, place) = try registration.register(record)
                // Read the device now, because a later record may change it, or merge it into another device.
                let device = reading ? registration.known[place] : nil
                registered.append((place, RegisteredDevice(effect: effect, device: device)))
            }
            try registration.flush()
            // A new device has no id before it is written.
            return registered.map { place, answer in
                var answer = answer
                answer.device?.id = registration.known[place].id
                return answer
            }
        }
        // Requests of single devices must not wait behind the imports of files and segments.
        return try await reading ? write(.quick, register) : retryingWhileBusy(register)
    }

    private static func stored(_ records: [DeviceRecord]) -> [DeviceRecord] {
        var texts = DeviceTexts()
        return records.map { texts.stored($0) }
    }
}

/// Registers each batch as it arrives. It defers no indexes, because they must not be dropped while other processes
/// register and send.
private struct BatchImport: DeviceImport {
    let store: PostgresDatabase

    func register(_ records: [DeviceRecord], now: Timestamp) async throws -> ImportCounts {
        try await store.importDevices(records, now: now)
    }

    var isPuttingOff: Bool { false }

    func finish(now: Timestamp) async throws -> ImportCounts { ImportCounts() }
}
