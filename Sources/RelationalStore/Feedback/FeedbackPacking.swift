import Model
import Store

/// The stored form of events that wait to be recorded: a version, and then each event. Numbers are big-endian. A text
/// is its number of bytes in two bytes, and its UTF-8.
enum FeedbackPacking {
    private static let version: UInt8 = 1
    /// The bits of an event's first byte.
    private static let namesPush: UInt8 = 1
    private static let hasValue: UInt8 = 2
    private static let namesDevice: UInt8 = 4

    static func pack(_ events: [FeedbackEvent]) -> [UInt8] {
        var bytes: [UInt8] = [version]
        bytes.reserveCapacity(events.count * 64)
        for event in events {
            var flags: UInt8 = 0
            switch event.source {
            case .push: flags |= namesPush
            case .device: flags |= namesDevice
            case .installation: break
            }
            if event.valueMicros != nil { flags |= hasValue }
            bytes.append(flags)
            bytes.append(UInt8(truncatingIfNeeded: event.kind.rawValue))
            append(event.id.high, to: &bytes)
            append(event.id.low, to: &bytes)
            append(event.at.milliseconds, to: &bytes)
            append(event.receivedAt.milliseconds, to: &bytes)
            if let value = event.valueMicros { append(value, to: &bytes) }
            append(event.name, to: &bytes)
            switch event.source {
            case .push(let run, let device):
                append(run, to: &bytes)
                append(device, to: &bytes)
            case .device(let device): append(device, to: &bytes)
            case .installation(let id, let topic):
                append(id, to: &bytes)
                append(topic, to: &bytes)
            }
        }
        return bytes
    }

    /// Returns `nil` if the bytes are not of this form.
    static func unpack(_ bytes: [UInt8]) -> [FeedbackEvent]? {
        var reader = Reader(rest: bytes[...])
        guard reader.byte() == version else { return nil }
        var events: [FeedbackEvent] = []
        while !reader.rest.isEmpty {
            guard let event = reader.event() else { return nil }
            events.append(event)
        }
        return events
    }

    /// Returns a number in its stored form.
    static func bytes(of number: Int64) -> [UInt8] {
        var bytes: [UInt8] = []
        append(number, to: &bytes)
        return bytes
    }

    private static func append(_ number: Int64, to bytes: inout [UInt8]) {
        for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        let count = text.utf8.count
        bytes.append(UInt8(count >> 8 & 0xFF))
        bytes.append(UInt8(count & 0xFF))
        bytes.append(contentsOf: text.utf8.prefix(Int(UInt16.max)))
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>

        mutating func byte() -> UInt8? { rest.popFirst() }

        mutating func number() -> Int64? {
            guard rest.count >= 8 else { return nil }
            defer { rest = rest.dropFirst(8) }
            return Int64(bitPattern: rest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }

        mutating func text() -> String? {
            guard let high = byte(), let low = byte() else { return nil }
            let count = Int(high) << 8 | Int(low)
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return String(decoding: rest.prefix(count), as: UTF8.self)
        }

        mutating func event() -> FeedbackEvent? {
            guard let flags = byte(), let kind = byte().flatMap({ FeedbackKind(rawValue: Int64($0)) }),
                let high = number(), let low = number(), let at = number(), let receivedAt = number()
            else { return nil }
            var value: Int64?
            if flags & hasValue != 0 {
                guard let number = number() else { return nil }
                value = number
            }
            guard let name = text() else { return nil }
            let source: FeedbackEvent.Source
            if flags & namesPush != 0 {
                guard let run = number(), let device = number() else { return nil }
                source = .push(run: run, device: device)
            } else if flags & namesDevice != 0 {
                guard let device = number() else { return nil }
                source = .device(device)
            } else {
                guard let id = text(), let topic = text() else { return nil }
                source = .installation(id, topic: topic)
            }
            return FeedbackEvent(
                source: source, kind: kind, name: name, id: (high, low), valueMicros: value,
                at: Timestamp(milliseconds: at), receivedAt: Timestamp(milliseconds: receivedAt))
        }
    }
}
