package import Model

/// A visible push that was sent or may have been sent, as the ledger of the frequency caps stores it.
package struct CapPush: Hashable, Sendable {
    package var device: Int64
    /// The person whose row holds the push too, see ``CapKey/person(topic:user:)``; 0 if there is none.
    package var person: Int64 = 0
    package var run: Int64
    /// The number of the lease among those of the delivery, from 1. A negative number is inherited from a merged
    /// device: the push counts, but it was not decided for this device.
    package var number: Int
    /// The rule that decided the push, see ``CapRule/code``.
    package var rule: UInt32
    /// Whether the push had a collapse id, so that it replaces the run's earlier copies on the device's screen.
    package var hasCollapseID: Bool
    package var reservedAt: Timestamp
    /// The time of its outcome; `nil` while the push is in flight.
    package var settledAt: Timestamp?

    package init(
        device: Int64, person: Int64 = 0, run: Int64, number: Int, rule: UInt32, hasCollapseID: Bool,
        reservedAt: Timestamp, settledAt: Timestamp? = nil
    ) {
        self.device = device
        self.person = person
        self.run = run
        self.number = number
        self.rule = rule
        self.hasCollapseID = hasCollapseID
        self.reservedAt = reservedAt
        self.settledAt = settledAt
    }
}

extension CapPush {
    /// A push as its user sees it. Copies with a collapse id of one run for one device are one alert.
    package struct Alert: Hashable, Sendable {
        private let device, run: Int64
        /// The number of a copy that stays beside the others; `nil` for copies that replace each other.
        private let number: Int?

        fileprivate init(_ push: CapPush) {
            device = push.device
            run = push.run
            number = push.hasCollapseID ? nil : push.number
        }
    }

    package var alert: Alert { Alert(self) }

    fileprivate func endsAfter(_ other: CapPush) -> Bool {
        guard let end = other.settledAt else { return false }
        return settledAt.map { $0 > end } ?? true
    }
}

extension [CapPush] {
    /// One copy of each alert: the copy that counts longest, which is in flight or ends last.
    package var alerts: [CapPush] {
        guard count > 1 else { return self }
        var alerts: [CapPush] = []
        alerts.reserveCapacity(count)
        for push in self {
            if let place = alerts.firstIndex(where: { $0.alert == push.alert }) {
                if push.endsAfter(alerts[place]) { alerts[place] = push }
            } else {
                alerts.append(push)
            }
        }
        return alerts
    }
}

/// The key of the ledger row that holds a push. Devices with neighbouring numbers share a row, so that a lease of a
/// thousand devices in order reads and writes about twenty rows. Each person has one row.
package struct CapKey: Hashable, Sendable, Comparable {
    private static let devicesPerRow: Int64 = 64

    package enum Kind: Int64, Hashable, Sendable, CaseIterable {
        case devices = 0
        case person = 1
    }

    package var kind: Kind
    package var id: Int64

    package init(_ kind: Kind, _ id: Int64) {
        self.kind = kind
        self.id = id
    }

    package static func device(_ device: Int64) -> CapKey { CapKey(.devices, device / devicesPerRow) }

    /// Returns the number of a user id within an app. If two users ever share a number, they get fewer pushes than
    /// allowed, never more.
    package static func person(topic: String, user: String) -> Int64 {
        Int64(bitPattern: FNV1a.hash("\(topic)\n\(user)") | 1)
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(id << 1 | kind.rawValue) }

    package static func < (left: CapKey, right: CapKey) -> Bool {
        (left.kind.rawValue, left.id) < (right.kind.rawValue, right.id)
    }
}

/// The packed form of one row: 48 bytes per push, little-endian. The pushes of each device are in the order of
/// reservation.
package enum CapRowFormat {
    private static let byteCount = 48
    private static let inFlight = Int64.max
    private static let collapses: Int64 = 1 << 32

    package static func pack(_ pushes: [CapPush]) -> [UInt8] {
        var bytes = [UInt8]()
        bytes.reserveCapacity(pushes.count * byteCount)
        for push in pushes {
            append(push.device, to: &bytes)
            append(push.person, to: &bytes)
            append(push.run, to: &bytes)
            append(Int64(push.rule) | (push.hasCollapseID ? collapses : 0) | Int64(push.number) << 33, to: &bytes)
            append(push.reservedAt.milliseconds, to: &bytes)
            append(push.settledAt?.milliseconds ?? inFlight, to: &bytes)
        }
        return bytes
    }

    /// Ignores trailing bytes that are shorter than a push.
    package static func unpack(_ bytes: [UInt8]) -> [CapPush] {
        var pushes = [CapPush]()
        pushes.reserveCapacity(bytes.count / byteCount)
        let bytes = bytes.span
        var start = 0
        while start + byteCount <= bytes.count {
            let word = number(bytes, start + 24)
            let settled = number(bytes, start + 40)
            pushes.append(
                CapPush(
                    device: number(bytes, start), person: number(bytes, start + 8), run: number(bytes, start + 16),
                    number: Int(word >> 33), rule: UInt32(truncatingIfNeeded: word),
                    hasCollapseID: word & collapses != 0,
                    reservedAt: Timestamp(milliseconds: number(bytes, start + 32)),
                    settledAt: settled == inFlight ? nil : Timestamp(milliseconds: settled)))
            start += byteCount
        }
        return pushes
    }

    /// Returns the latest moment in a row, in ms, which decides when the row may be deleted. `Int64.max` while a push
    /// is in flight.
    package static func latest(_ pushes: [CapPush]) -> Int64 {
        pushes.reduce(0) { max($0, $1.reservedAt.milliseconds, $1.settledAt?.milliseconds ?? inFlight) }
    }

    private static func append(_ number: Int64, to bytes: inout [UInt8]) {
        var rest = UInt64(bitPattern: number)
        for _ in 0..<8 {
            bytes.append(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        }
    }

    private static func number(_ bytes: Span<UInt8>, _ start: Int) -> Int64 {
        var number: UInt64 = 0
        for index in 0..<8 { number |= UInt64(bytes[start + index]) << UInt64(index * 8) }
        return Int64(bitPattern: number)
    }
}

/// The caps of an app and the class of a campaign, as they were in force when pushes were decided. Pushes in the ledger
/// name the rule by its code, so they can be verified by that rule, whatever is configured now.
package struct CapRule: Hashable, Sendable {
    package let topic: String
    package let pushClass: String
    package let caps: [FrequencyCap]
    /// The number that identifies the rule in the ledger.
    package let code: UInt32
    /// The caps that count the pushes of this class and limit them.
    package let inForce: [FrequencyCap]
    /// Whether one of these caps is per user.
    package let asksForUser: Bool

    package init(topic: String, pushClass: String, caps: [FrequencyCap]) {
        inForce = caps.filter { $0.covers(pushClass) }
        asksForUser = inForce.contains { $0.per == .user }
        self.topic = topic
        self.pushClass = pushClass
        self.caps = caps
        let texts = [topic, pushClass] + caps.map(Self.text)
        code = UInt32(truncatingIfNeeded: FNV1a.hash(texts.joined(separator: "\n")))
    }

    /// - Parameter capsJSON: as ``capsJSON()`` writes it.
    package init(topic: String, pushClass: String, capsJSON: String) throws {
        self.init(topic: topic, pushClass: pushClass, caps: try StoredJSON.value(capsJSON))
    }

    package func capsJSON() throws -> String { try StoredJSON.text(caps) }

    package var longestWindow: Duration { caps.map(\.window).max() ?? .zero }

    private static func text(_ cap: FrequencyCap) -> String {
        let reserve = cap.reserve.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        return "\(cap.limit) \(cap.window.wholeMilliseconds) \(cap.per.rawValue) "
            + "\(cap.classes.map { $0.joined(separator: ",") } ?? "*") \(reserve.joined(separator: ","))"
    }
}
