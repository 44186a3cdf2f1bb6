package import Model
import Platform

/// A payload for one locale, complete except for the parts that depend on the device or the time. If there are no such
/// parts, all devices get the same bytes.
package struct PayloadPrototype: Hashable, Sendable {
    package enum Piece: Hashable, Sendable {
        case bytes([UInt8])
        /// The device's value at this index of ``PayloadRenderer/fields``, escaped for the inside of a JSON string.
        case field(Int)
        /// The device's own badge count, including this push.
        case badge
        /// The moment of sending plus this number of seconds, as UNIX seconds.
        case secondsAfterSending(Int64)
        /// The reference of the push, and whether the device reports the arrival.
        case reference
    }

    /// What the app sends back with its reports about one push.
    package struct Reference: Sendable {
        /// The text of a `Platform.PushReference`.
        package var text: [UInt8]
        /// Whether the device is asked to report the arrival.
        package var asksArrival: Bool

        package init(text: [UInt8], asksArrival: Bool) {
            self.text = text
            self.asksArrival = asksArrival
        }

        /// The reference in a push that no run sends. It has the right length, and no server accepts it.
        fileprivate static let sample = Reference(
            text: Array(repeating: UInt8(ascii: "A"), count: PushReference.textCount), asksArrival: false)
        /// The reference with its quotes.
        fileprivate static let bytesCount = PushReference.textCount + 2
    }

    /// The value of `fanfare` after the reference, if the device is asked to report the arrival.
    private static let arrivalMember = Array(#","a":1"#.utf8)

    package let pieces: [Piece]
    /// The number of bytes that are the same for all devices.
    package let commonByteCount: Int
    /// The planned time, used if no moment of sending is given.
    private let plannedSeconds: Int64

    init(pieces: [Piece], plannedSeconds: Int64) {
        self.pieces = pieces
        self.plannedSeconds = plannedSeconds
        commonByteCount = pieces.reduce(0) { sum, piece in
            if case .bytes(let bytes) = piece { sum + bytes.count } else { sum }
        }
    }

    /// Whether no byte depends on the device or on the moment.
    package var isCommon: Bool { pieces.count == 1 && commonByteCount > 0 }

    /// Returns the payload for one device. A field that the device does not have becomes an empty text.
    ///
    /// - Parameters:
    ///   - fields: the device's values in the order of ``PayloadRenderer/fields``.
    ///   - sentAt: the moment of this attempt, for the `timestamp` of a Live Activity. The device shows the update with
    ///     the newest one. `nil` means the planned time of the run.
    ///   - reference: the reference of the push, for a campaign with feedback. `nil` for a sample of the same length.
    package func payload(
        fields: [String?], badge: Int, sentAt: Timestamp? = nil, reference: Reference? = nil
    ) -> [UInt8] {
        if isCommon, case .bytes(let bytes) = pieces[0] { return bytes }
        var payload: [UInt8] = []
        payload.reserveCapacity(commonByteCount + Self.holeBytesGuess * pieces.count)
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): payload.append(contentsOf: bytes)
            case .field(let index): JSONEscaping.append(fields[index] ?? "", to: &payload)
            case .badge: Self.append(Int64(badge), to: &payload)
            case .secondsAfterSending(let seconds):
                Self.append((sentAt?.seconds ?? plannedSeconds) + seconds, to: &payload)
            case .reference: Self.append(reference ?? .sample, to: &payload)
            }
        }
        return payload
    }

    /// The estimated number of bytes per piece that is filled in, used to reserve capacity.
    private static let holeBytesGuess = 16

    private static func append(_ reference: Reference, to payload: inout [UInt8]) {
        payload.append(UInt8(ascii: "\""))
        payload.append(contentsOf: reference.text)
        payload.append(UInt8(ascii: "\""))
        if reference.asksArrival { payload.append(contentsOf: arrivalMember) }
    }

    /// Appends a number without creating a string first, because this happens once per device.
    private static func append(_ number: Int64, to bytes: inout [UInt8]) {
        guard number >= 0 else {
            bytes.append(contentsOf: String(number).utf8)
            return
        }
        let start = bytes.count
        var rest = number
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
    }

    /// The size of the smallest payload: every device value is empty, the badge has one digit and the time has ten.
    package var leastByteCount: Int {
        pieces.reduce(commonByteCount) { sum, piece in
            switch piece {
            case .bytes, .field: sum
            case .badge: sum + 1
            case .secondsAfterSending: sum + 10
            case .reference: sum + Reference.bytesCount
            }
        }
    }

    /// Returns the size if every device value has `fieldMaxBytes` after escaping, the badge has five digits and the
    /// time has ten.
    package func worstCaseByteCount(fieldMaxBytes: Int) -> Int {
        pieces.reduce(commonByteCount) { sum, piece in
            switch piece {
            case .bytes: sum
            case .field: sum + fieldMaxBytes
            case .badge: sum + 5
            case .secondsAfterSending: sum + 10
            case .reference: sum + Reference.bytesCount + Self.arrivalMember.count
            }
        }
    }
}
