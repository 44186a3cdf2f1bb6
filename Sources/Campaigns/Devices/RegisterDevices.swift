import CampaignFiles
package import Model
import Store

/// Registers devices for the backend of an app: one by one, or many in a stream.
package struct RegisterDevices: Sendable {
    /// A device that was registered alone.
    package struct Registered: Sendable {
        package var result: DeviceResult
        /// Whether the installation had no device before.
        package var isNew: Bool
    }

    private let store: any DeviceRegistry & AuditLog
    private let queue: CommitQueue<DeviceRecord, RegisteredDevice>
    private let given: GivenDevices
    private let now: @Sendable () -> Timestamp

    init(
        store: any DeviceRegistry & AuditLog, queue: CommitQueue<DeviceRecord, RegisteredDevice>, given: GivenDevices,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.store = store
        self.queue = queue
        self.given = given
        self.now = now
    }

    /// Registers one device. The body has the form of a JSON line of `devices import`. The request's path gives the
    /// topic and the installation.
    package func register(_ body: [UInt8], topic: String, installation: String) async throws -> Registered {
        let record: DeviceRecord
        do throws(LineFault) {
            record = try given.record(body, topic: topic, installation: installation)
        } catch {
            throw Failure(.invalidData, error.reason)
        }
        let registered = try await queue.submit(record)
        guard let device = registered.device, device.record.installationID == installation else {
            throw Failure(
                .refused,
                "token \(record.token.redacted) was later registered with another installation; get the current token "
                    + "from the device")
        }
        return Registered(result: DeviceResult(device), isNew: registered.effect == .inserted)
    }

    /// Registers the valid lines of the batch in one transaction, and returns a result for each line. If the store
    /// fails, none of them is stored, and their results say so.
    ///
    /// - Parameter isAllowed: whether the caller may register devices of a topic.
    package func register(
        _ lines: inout DeviceLines, isAllowed: (_ topic: String) -> Bool
    ) async -> [RegistrationLineResult] {
        let lines = lines.takeLines()
        var results: [RegistrationLineResult] = []
        results.reserveCapacity(lines.count)
        var records: [DeviceRecord] = []
        records.reserveCapacity(lines.count)
        for line in lines {
            switch line.device {
            case .success(let record) where isAllowed(record.topic):
                records.append(record)
                results.append(RegistrationLineResult(line: line.number, status: ""))
            case .success(let record):
                results.append(
                    .rejected(line.number, "topic \"\(record.topic)\" does not belong to the token's app"))
            case .failure(let fault):
                results.append(.rejected(line.number, Redaction.withoutTokens(fault.reason)))
            }
        }
        await store(records, in: &results)
        return results
    }

    /// Stores the records, and sets the status of their results: those without a status, in the same order.
    private func store(_ records: [DeviceRecord], in results: inout [RegistrationLineResult]) async {
        guard !records.isEmpty else { return }
        let places = results.indices.filter { results[$0].status.isEmpty }
        do {
            let registered = try await store.registerDevices(records, reading: false, now: now())
            for (place, device) in zip(places, registered) { results[place].status = device.effect.rawValue }
        } catch {
            let reason = Failure(error)?.messages.joined(separator: "\n") ?? "internal error; see the log"
            for place in places {
                results[place].status = RegistrationLineResult.notStored
                results[place].reason = reason
            }
        }
    }

    /// Records the counts of a stream.
    package func record(_ counts: RegistrationCountsResult, by actor: Actor) async throws {
        guard counts.read > 0 else { return }
        try await store.recordEvent(
            kind: .devicesImported, run: nil, actor: actor,
            detail: "\(counts.read.counted("line")): \(counts.inserted) new, \(counts.updated) updated, "
                + "\(counts.tokensReplaced) with a new token, \(counts.merged) merged, \(counts.unchanged) unchanged, "
                + "\(counts.rejected) rejected, \(counts.notStored) not stored", now: now())
    }
}

/// The response to a registration: the fields of the device, and the installation's new secret if it was asked for.
package struct RegistrationResult: Codable, Hashable, Sendable {
    package var device: DeviceResult
    package var secret: String?

    private enum CodingKeys: String, CodingKey { case secret }

    package init(_ device: DeviceResult) { self.device = device }

    package init(from decoder: any Decoder) throws {
        device = try DeviceResult(from: decoder)
        secret = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(String.self, forKey: .secret)
    }

    package func encode(to encoder: any Encoder) throws {
        try device.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(secret, forKey: .secret)
    }
}

/// Splits a body that arrives in pieces into lines, each with a device, and collects the lines into a batch.
package struct DeviceLines {
    /// The maximum number of lines in one transaction. The limit is low because pushes in progress wait for the
    /// transaction.
    private static let batchMax = 2_000

    private var arriving = ArrivingDevices()
    private var batch: [ArrivingDevices.Line] = []

    package init() {}

    package var isEmpty: Bool { batch.isEmpty }
    package mutating func append(_ piece: [UInt8]) { arriving.append(piece) }
    /// Ends the input: the remaining bytes are the last line.
    package mutating func finish() { arriving.finish() }

    /// Reads the complete lines into the batch. Returns `true` if the batch is full; more lines may follow.
    package mutating func gather() -> Bool {
        while batch.count < Self.batchMax {
            guard let line = arriving.next() else { return false }
            batch.append(line)
        }
        return true
    }

    fileprivate mutating func takeLines() -> [ArrivingDevices.Line] {
        defer { batch.removeAll(keepingCapacity: true) }
        return batch
    }
}

/// The result of one line of a stream of devices. The last line of the response belongs to no device: it has the status
/// `done` and the counts.
package struct RegistrationLineResult: Codable, Hashable, Sendable {
    package static let rejected = "rejected"
    /// The store did not store the line. The caller may send the same line again.
    package static let notStored = "not_stored"
    package static let done = "done"

    /// The number of the line, from 1, counting blank lines.
    package var line: Int?
    /// `inserted`, `updated`, `unchanged`, `token_replaced`, `merged`, `rejected` or `not_stored`.
    package var status: String
    /// The reason for `rejected` or `not_stored`.
    package var reason: String?
    package var counts: RegistrationCountsResult?

    static func rejected(_ line: Int, _ reason: String) -> RegistrationLineResult {
        RegistrationLineResult(line: line, status: rejected, reason: reason)
    }

    package static func done(_ counts: RegistrationCountsResult) -> RegistrationLineResult {
        RegistrationLineResult(status: done, counts: counts)
    }

    package var isGood: Bool { status != Self.rejected && status != Self.notStored }

    /// Appends the result as JSON with a line end. The code writes JSON without an encoder, because there may be
    /// millions of lines.
    package func append(to bytes: inout [UInt8]) {
        bytes += "{".utf8
        if let counts { bytes += "\"counts\":\(counts.json),".utf8 }
        if let line { bytes += "\"line\":\(line),".utf8 }
        if let reason {
            bytes += "\"reason\":".utf8
            JSONEscaping.appendQuoted(reason, to: &bytes)
            bytes += ",".utf8
        }
        bytes += "\"status\":\"".utf8
        bytes += status.utf8
        bytes += "\"}\n".utf8
    }
}

/// The counts of all lines. Each line that was read counts once.
package struct RegistrationCountsResult: Codable, Hashable, Sendable {
    package var read = 0
    package var inserted = 0
    package var updated = 0
    package var unchanged = 0
    package var tokensReplaced = 0
    package var merged = 0
    package var rejected = 0
    package var notStored = 0

    package init() {}

    package mutating func add(_ line: RegistrationLineResult) {
        read += 1
        switch RegisteredDevice.Effect(rawValue: line.status) {
        case .inserted: inserted += 1
        case .updated: updated += 1
        case .unchanged: unchanged += 1
        case .tokenReplaced: tokensReplaced += 1
        case .merged: merged += 1
        case nil where line.status == RegistrationLineResult.notStored: notStored += 1
        case nil: rejected += 1
        }
    }

    fileprivate var json: String {
        "{\"inserted\":\(inserted),\"merged\":\(merged),\"not_stored\":\(notStored),\"read\":\(read),"
            + "\"rejected\":\(rejected),\"tokens_replaced\":\(tokensReplaced),\"unchanged\":\(unchanged),"
            + "\"updated\":\(updated)}"
    }
}

/// The body of a single registration, in the form of a line of `devices import`. This type only documents the API,
/// because the import's rules read the body.
package struct DeviceRegistrationBody: Codable, Sendable {
    package var token: String
    /// `production` or `sandbox`.
    package var environment: String
    package var topic: String?
    package var installationId: String?
    package var userId: String?
    package var locale: String?
    package var timeZone: String?
    package var country: String?
    package var appVersion: String?
    package var osVersion: String?
    package var model: String?
    package var alertsAllowed: Bool?
    package var registeredAt: String?
    package var lastSeenAt: String?
    /// The number on the app's icon. An app that clears it sends 0.
    package var badge: Int?
    package var tags: [String]?
    /// Added to the attributes that are stored.
    package var attributes: [String: String]?
}
