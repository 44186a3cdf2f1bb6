import Platform

/// One line of a device import: an installation as the app's backend knows it.
package struct DeviceRecord: Hashable, Sendable {
    /// The maximum size of each text of a new registration, and of an attribute's name. Stored devices may have longer
    /// texts.
    package static let textBytesMax = 256
    /// The maximum size of an attribute's value, which is that of a whole push.
    package static let attributeBytesMax = 4096
    /// The maximum size of all attributes of a registration together, with their names.
    package static let attributesBytesMax = 16_384
    /// The maximum size of all tags of a registration together.
    package static let tagsBytesMax = 16_384

    package var token: DeviceToken
    package var environment: PushEnvironment
    package var topic: String
    package var installationID: String?
    package var userID: String?
    package var locale: String?
    package var timeZone: String?
    package var country: String?
    package var appVersion: String?
    package var osVersion: String?
    package var model: String?
    /// `nil` if unknown, which is treated as allowed.
    package var alertsAllowed: Bool?
    package var registeredAt: Timestamp?
    package var lastSeenAt: Timestamp?
    /// The number on the app's icon. `nil` leaves the stored count unchanged.
    package var badge: Int?
    /// `nil` leaves the stored tags unchanged. An empty array removes them.
    package var tags: [String]?
    /// Attributes to set in addition to the stored ones. `nil` sets none.
    package var attributes: [String: String]?
    /// Whether ``attributes`` replaces all stored attributes. It has no effect if ``attributes`` is `nil`.
    package var replacesAttributes = false
    /// The values to remove from a known device. If the record also sets a value, the value is set and not removed.
    package var erased: Set<Erasure> = []

    /// A value that an import may remove from a device. Identifying values and times cannot be removed.
    package enum Erasure: Hashable, Sendable {
        case userID, locale, timeZone, country, appVersion, osVersion, model, alertsAllowed, attributes
        case attribute(String)

        /// Every erasure of a whole field.
        package static let whole: [Erasure] = [
            .userID, .locale, .timeZone, .country, .appVersion, .osVersion, .model, .alertsAllowed, .attributes,
        ]
    }

    package init(token: DeviceToken, environment: PushEnvironment, topic: String) {
        self.token = token
        self.environment = environment
        self.topic = topic
    }

    /// Whether a text of a stored device is longer than that of a new registration may be, so that an import would
    /// refuse it.
    package var hasTextsBeyondLimits: Bool {
        let texts = [installationID, userID, locale, timeZone, country, appVersion, osVersion, model]
        let (tags, attributes) = (tags ?? [], attributes ?? [:])
        return texts.contains { $0?.utf8.count ?? 0 > Self.textBytesMax }
            || tags.contains { $0.utf8.count > Self.textBytesMax }
            || tags.reduce(0) { $0 + $1.utf8.count } > Self.tagsBytesMax
            || attributes.contains {
                $0.key.utf8.count > Self.textBytesMax || $0.value.utf8.count > Self.attributeBytesMax
            }
            || attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count } > Self.attributesBytesMax
    }
}

/// Whether a device may be sent to.
package enum DeviceStatus: String, Hashable, Sendable, Codable, CaseIterable {
    /// The device may be sent to. It may become `suspended` or `gone`.
    case active
    /// APNs rejected its token as wrong for this environment or topic. The device is kept and not sent to. It becomes
    /// `active` on the next registration.
    case suspended
    /// APNs reported its token as inactive after its last registration. Only a newer registration makes it `active`.
    case gone

    /// The stored number.
    package var code: Int64 {
        switch self {
        case .active: 0
        case .suspended: 1
        case .gone: 2
        }
    }

    /// Creates a status from its stored number. An unknown number counts as `gone`, so that the device is not sent to.
    package init(code: Int64) {
        self = Self.allCases.first { $0.code == code } ?? .gone
    }
}

/// An environment of APNs. A device token is valid in only one environment (`ProviderProtocol` section 1), and so are
/// Apple's newer keys.
package enum PushEnvironment: String, Hashable, Sendable, Codable, CaseIterable {
    case production
    case sandbox

    /// The stored number.
    package var code: Int64 { self == .production ? 0 : 1 }

    package init(code: Int64) { self = code == 0 ? .production : .sandbox }

    /// The name in warnings before a push is sent. Capitals draw attention to production, which reaches the public.
    package var warningName: String { self == .production ? rawValue.uppercased() : rawValue }

    /// Returns the environment with a number of devices: `PRODUCTION: 18,812 devices`.
    package func summary(devices: Int) -> String {
        "\(warningName): \(devices.counted("device"))"
    }
}

/// A version of dotted numbers, compared component by component: `4.10` is newer than `4.9`, `4.2` equals `4.2.0`.
package struct AppVersion: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    package let components: [UInt64]

    private enum CodingKeys: String, CodingKey {
        case components = "components"
    }

    /// Returns `nil` unless the text is 1 to 8 dotted numbers. A suffix after `-`, `+` or a blank (`4.2-beta`) is
    /// dropped.
    package init?(_ text: some StringProtocol) {
        let bare = text.prefix { $0 != "-" && $0 != "+" && $0 != " " }
        let parts = bare.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...8).contains(parts.count) else { return nil }
        var numbers: [UInt64] = []
        for part in parts {
            guard part.allSatisfy({ $0.isASCII && $0.isNumber }), let number = UInt64(part) else { return nil }
            numbers.append(number)
        }
        while numbers.count > 1, numbers.last == 0 { numbers.removeLast() }
        components = numbers
    }

    package var description: String { components.map(String.init).joined(separator: ".") }

    /// A text whose byte order is the order of versions, so that SQL can compare versions as texts. Each number
    /// follows a letter that states its number of digits (`4.10` is `a4b10`).
    package var sortKey: String {
        components.map { number in
            let digits = String(number)
            let length = UnicodeScalar(UInt8(ascii: "a") + UInt8(digits.utf8.count - 1))
            return "\(length)\(digits)"
        }.joined()
    }

    package static func < (left: AppVersion, right: AppVersion) -> Bool {
        left.components.lexicographicallyPrecedes(right.components)
    }
}

/// The address of one installation at APNs: 32 to 100 opaque bytes. Its description shows only the last 8 characters.
package struct DeviceToken: Hashable, Sendable, CustomStringConvertible {
    package static let byteCounts = 32...100

    package let bytes: [UInt8]

    /// Returns `nil` if the length is outside ``byteCounts``.
    package init?(bytes: [UInt8]) {
        guard Self.byteCounts.contains(bytes.count) else { return nil }
        self.bytes = bytes
    }

    /// The reason why a text is not a token.
    package enum HexFault: Error, Hashable, Sendable {
        case notHex
        case oddCount
        /// The number of bytes is outside ``byteCounts``.
        case byteCount(Int)
    }

    /// Reads hex digits of either case. It tolerates `<`, `>` and blanks around or between them, as old apps print
    /// them.
    package init?(hex text: some StringProtocol) {
        do { try self.init(hexDigits: Array(text.utf8)[...]) } catch { return nil }
    }

    /// Reads hex digits as ``init(hex:)`` does, from the bytes of the text. An import calls it once per line.
    package init(hexDigits text: ArraySlice<UInt8>) throws(HexFault) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 2)
        var high: UInt8 = 0
        var isHalf = false
        for character in text {
            let digit = Self.digits[Int(character)]
            if digit < 16 {
                if isHalf { bytes.append(high << 4 | digit) }
                high = digit
                isHalf.toggle()
            } else if digit == Self.notHex {
                throw .notHex
            }
        }
        guard !isHalf else { throw .oddCount }
        guard Self.byteCounts.contains(bytes.count) else { throw .byteCount(bytes.count) }
        self.bytes = bytes
    }

    /// The whole token in lower-case hex, for the request path and for explicit exports. Do not use it in logs or
    /// pages.
    package var hex: String {
        Hex.text(bytes)
    }

    /// The last 8 characters, for logs and pages.
    package var redacted: String { "…" + Hex.text(Array(bytes.suffix(4))) }

    package var description: String { redacted }

    private static let notHex: UInt8 = 255
    private static let filler: UInt8 = 254

    /// The value of each byte as a hex digit. ``filler`` marks other characters that a token may contain, and
    /// ``notHex`` marks all other bytes.
    private static let digits: [UInt8] = (0...255).map { (byte: UInt8) in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: " "): filler
        default: notHex
        }
    }
}
