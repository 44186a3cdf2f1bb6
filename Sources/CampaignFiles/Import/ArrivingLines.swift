package import Model
import Synchronization

/// Splits JSON Lines that arrive in pieces, as a request's body does. Lines already returned are dropped with the next
/// piece, so that memory use stays constant.
struct ArrivingLines {
    enum Line {
        case text(Range<Int>)
        case tooLong
    }

    private(set) var bytes: [UInt8] = []
    /// The number of the last returned line, from 1.
    private(set) var number = 0
    private var start = 0
    /// The end of the searched bytes: there is no line end between `start` and this position.
    private var searched = 0
    private var isEnded = false
    /// Whether the current line is too long. Its beginning was dropped.
    private var isPassing = false

    mutating func append(_ piece: [UInt8]) {
        bytes.removeSubrange(..<start)
        searched -= start
        start = 0
        if number == 0, bytes.isEmpty, piece.starts(with: [0xEF, 0xBB, 0xBF]) {
            bytes += piece.dropFirst(3)
        } else {
            bytes += piece
        }
    }

    /// Records that nothing more arrives. The remaining bytes are the last line.
    mutating func finish() { isEnded = true }

    /// Returns the next line that is not blank. `nil` if no complete line is available.
    mutating func next() -> Line? {
        while let range = cut() {
            number += 1
            let wasPassing = isPassing
            isPassing = false
            if wasPassing || range.count > LineCutter.recordBytesMax { return .tooLong }
            if !bytes[range].allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) { return .text(range) }
        }
        return nil
    }

    private mutating func cut() -> Range<Int>? {
        if let end = bytes[searched...].firstIndex(of: 0x0A) {
            defer { (start, searched) = (end + 1, end + 1) }
            return start..<end
        }
        searched = bytes.count
        if isEnded {
            guard start < bytes.count || isPassing else { return nil }
            defer { start = bytes.count }
            return start..<bytes.count
        }
        if bytes.count - start > LineCutter.recordBytesMax {
            isPassing = true
            start = bytes.count
        }
        return nil
    }
}

/// Reads devices from JSON Lines that arrive in pieces, with the rules and messages of ``DeviceFileReader``.
package struct ArrivingDevices {
    package struct Line: Sendable {
        package var number: Int
        package var device: Result<DeviceRecord, LineFault>
    }

    private var lines = ArrivingLines()
    private var decoder = DeviceLineDecoder(columns: nil)

    package init() {}

    package mutating func append(_ piece: [UInt8]) { lines.append(piece) }
    package mutating func finish() { lines.finish() }

    /// Returns the next device. `nil` if no complete line is available.
    package mutating func next() -> Line? {
        guard let line = lines.next() else { return nil }
        guard case .text(let range) = line else {
            return Line(number: lines.number, device: .failure(LineFault.tooLong))
        }
        return Line(
            number: lines.number,
            device: Result { () throws(LineFault) in
                try decoder.decode(lines.bytes, range, fields: [])
            })
    }
}

/// Reads the members of a segment from JSON Lines that arrive in pieces: `{"user_id": "u-17"}`.
package struct ArrivingMembers {
    package struct Line: Sendable {
        package var number: Int
        package var member: Result<SegmentMember, LineFault>
    }

    private var lines = ArrivingLines()

    package init() {}

    package mutating func append(_ piece: [UInt8]) { lines.append(piece) }
    package mutating func finish() { lines.finish() }

    /// Returns the next member. `nil` if no complete line is available.
    package mutating func next() -> Line? {
        guard let line = lines.next() else { return nil }
        guard case .text(let range) = line else {
            return Line(number: lines.number, member: .failure(LineFault.tooLong))
        }
        return Line(
            number: lines.number,
            member: Result { () throws(LineFault) in
                try Self.member(lines.bytes, range)
            })
    }

    private static func member(_ bytes: [UInt8], _ range: Range<Int>) throws(LineFault) -> SegmentMember {
        let members = try JSONLineReader.members(bytes, range)
        guard members.count == 1, let member = members.first else {
            throw LineFault(
                reason:
                    "\(members.count) keys instead of one of \(SegmentMemberDecoder.columns.joined(separator: ", "))")
        }
        let name = String(decoding: member.key.prefix(60), as: UTF8.self)
        guard SegmentMemberDecoder.columns.contains(name) else {
            let advice =
                Suggestion.nearest(to: name, among: SegmentMemberDecoder.columns)
                .map { "did you mean \(quoted($0))?" }
                ?? "give one of \(SegmentMemberDecoder.columns.joined(separator: ", "))"
            throw LineFault(reason: "unknown key \(quoted(name)); \(advice)")
        }
        let text: [UInt8] =
            switch member.value {
            case .text(let bytes), .number(let bytes): bytes
            default: throw LineFault(reason: "\(name) has a value of the wrong type")
            }
        return try SegmentMemberDecoder(column: name).member(text)
    }
}

extension LineFault {
    fileprivate static let tooLong = LineFault(reason: "longer than \(LineCutter.recordBytesMax) bytes")
}

/// Reads single devices from JSON objects. The topic and the installation come from the request's URL.
package final class GivenDevices: Sendable {
    /// The shared decoder. It is large, and caches values that most devices have in common.
    private let decoder = Mutex(DeviceLineDecoder(columns: nil))

    package init() {}

    /// Decodes a device. The object may repeat the topic and the installation, but not with different values.
    package func record(_ body: [UInt8], topic: String, installation: String) throws(LineFault) -> DeviceRecord {
        try decoder.withLock { decoder in
            Result { () throws(LineFault) in
                try decoder.decode(body, topic: topic, installation: installation)
            }
        }.get()
    }
}
