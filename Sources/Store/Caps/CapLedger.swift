package import Model

/// A visible push that left, or may have, as the ledger of the frequency caps holds it.
package struct CapPush: Hashable, Sendable {
    package var device: Int64
    /// Whose ledger holds it as well, see ``CapKey/person(topic:user:)``; 0: nobody's.
    package var person: Int64 = 0
    package var run: Int64
    /// Which lease of the delivery it was, from 1. Negative: inherited from a device that was merged, and counted without
    /// being this one's to decide.
    package var number: Int
    /// By what it was decided, see ``CapRule/code``.
    package var rule: UInt32
    /// Whether it went with a collapse id, so that it takes the place of the run's earlier copies on the device's screen.
    package var hasCollapseID: Bool
    package var reservedAt: Timestamp
    /// When its outcome came; nil: in flight.
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
    /// What somebody sees of it. Copies with a collapse id of one run for one device are one alert.
    package struct Alert: Hashable, Sendable {
        private let device, run: Int64
        /// Of a copy that stays beside the others.
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
    /// Of the copies of each alert the one that counts longest: in flight, or else the last to end.
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

/// Which row of the ledger holds a push: devices with neighbouring numbers share one, so that a lease of a thousand in
/// order reads and writes some twenty rows; each person has one.
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

    /// The number that a user id of an app goes by. Should two ever share one, they get less than they might, never more.
    package static func person(topic: String, user: String) -> Int64 {
        Int64(bitPattern: FNV1a.hash("\(topic)\n\(user)") | 1)
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(id << 1 | kind.rawValue) }

    package static func < (left: CapKey, right: CapKey) -> Bool {
        (left.kind.rawValue, left.id) < (right.kind.rawValue, right.id)
    }
}

/// The pushes of one row, those of each device in the order they were reserved in, as they are packed: 48 bytes each, little
/// endian.
package enum CapPage {
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

    /// A rest shorter than a push is left out.
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

    /// Until when a row must be kept: the latest moment in it, the greatest number while one of its pushes is in flight.
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

/// The caps of an app and the class of a campaign, as they were in force when pushes were decided. The ledger's pushes
/// name it by its code, so that they can be proven by the rule of then, whatever is configured now.
package struct CapRule: Hashable, Sendable {
    package let topic: String
    package let pushClass: String
    package let caps: [FrequencyCap]
    /// The number it goes by.
    package let code: UInt32
    /// Those that count its pushes, and hold them back.
    package let inForce: [FrequencyCap]
    /// Whether one of these is for each user.
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
