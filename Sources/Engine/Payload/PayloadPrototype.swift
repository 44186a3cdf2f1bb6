/// A payload for one locale with everything filled in but what differs per device. Without such holes all devices
/// share its bytes.
package struct PayloadPrototype: Hashable, Sendable {
    package enum Piece: Hashable, Sendable {
        case bytes([UInt8])
        /// The inside of a JSON string: the device's value at this index of ``PayloadRenderer/fields``.
        case field(Int)
        /// The device's own badge count.
        case badge
    }

    package let pieces: [Piece]
    /// Bytes of everything that is the same for all devices.
    package let commonByteCount: Int

    init(pieces: [Piece]) {
        self.pieces = pieces
        commonByteCount = pieces.reduce(0) { sum, piece in
            if case .bytes(let bytes) = piece { sum + bytes.count } else { sum }
        }
    }

    /// True when no byte depends on the device.
    package var isCommon: Bool { pieces.count == 1 && commonByteCount > 0 }

    /// The payload for one device. A field the device does not have becomes an empty text.
    package func payload(fields: [String?], badge: Int) -> [UInt8] {
        if isCommon, case .bytes(let bytes) = pieces[0] { return bytes }
        var payload: [UInt8] = []
        payload.reserveCapacity(commonByteCount + 32 * pieces.count)
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): payload.append(contentsOf: bytes)
            case .field(let index): JSONBytes.appendEscaped(fields[index] ?? "", to: &payload)
            case .badge: payload.append(contentsOf: String(badge).utf8)
            }
        }
        return payload
    }

    /// Bytes when every device value is as long as `fieldMaxBytes` and the badge has five digits.
    package func worstCaseByteCount(fieldMaxBytes: Int) -> Int {
        pieces.reduce(commonByteCount) { sum, piece in
            switch piece {
            case .bytes: sum
            case .field: sum + fieldMaxBytes
            case .badge: sum + 5
            }
        }
    }
}
