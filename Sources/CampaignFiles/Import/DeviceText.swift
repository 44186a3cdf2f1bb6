import Model

/// Parsers for the texts of a device's columns.
enum DeviceText {
    static func token(_ bytes: [UInt8], _ range: Range<Int>) throws(LineFault) -> DeviceToken {
        do throws(DeviceToken.HexFault) {
            return try DeviceToken(hexDigits: bytes[range])
        } catch {
            switch error {
            case .notHex: throw LineFault(reason: "token holds a character that is not a hex digit")
            case .oddCount: throw LineFault(reason: "token has an odd number of hex digits")
            case .byteCount(let count):
                let limits = "\(DeviceToken.byteCounts.lowerBound) to \(DeviceToken.byteCounts.upperBound)"
                throw LineFault(reason: "token has \(count) bytes, not \(limits)")
            }
        }
    }

    static func environment(_ bytes: ArraySlice<UInt8>) -> PushEnvironment? {
        PushEnvironment(rawValue: String(decoding: bytes, as: UTF8.self).lowercased())
    }

    /// Parses a bundle id, with the suffix of the push type if it has one (`ProviderProtocol` section 4). A token that
    /// is registered with a suffix is valid only for that push type.
    static func topic(_ bytes: ArraySlice<UInt8>) -> Result<String, LineFault> {
        plain(bytes, "topic").flatMap { text in
            Topic.isWellFormed(text) ? .success(text) : .failure(LineFault(reason: "topic is not a bundle id"))
        }
    }

    static func locale(_ bytes: ArraySlice<UInt8>) -> Result<String, LineFault> {
        plain(bytes, "locale").flatMap { text in
            LocaleTag(text) == nil ? .failure(LineFault(reason: "locale is not a language tag")) : .success(text)
        }
    }

    /// Checks only the form of a time zone: a device may know a zone that this machine does not know yet.
    static func timeZone(_ bytes: ArraySlice<UInt8>) -> Result<String, LineFault> {
        plain(bytes, "time_zone").flatMap { text in
            let fits = text.utf8.count <= 64 && text.utf8.allSatisfy { (0x2B...0x7A).contains($0) && $0 != 0x2C }
            return fits ? .success(text) : .failure(LineFault(reason: "time_zone is not an IANA name"))
        }
    }

    static func country(_ bytes: ArraySlice<UInt8>) -> Result<String, LineFault> {
        plain(bytes, "country").flatMap { text in
            CountryCode.isWellFormed(text.utf8)
                ? .success(text) : .failure(LineFault(reason: "country is not a two-letter code"))
        }
    }

    static func version(_ bytes: ArraySlice<UInt8>, _ name: String) -> Result<String, LineFault> {
        plain(bytes, name).flatMap { text in
            AppVersion(text) == nil
                ? .failure(LineFault(reason: "\(name) is not a version of dotted numbers")) : .success(text)
        }
    }

    static func plain(
        _ bytes: ArraySlice<UInt8>, _ name: @autoclosure () -> String
    ) -> Result<String, LineFault> {
        guard bytes.count <= DeviceRecord.textBytesMax else { return .failure(tooLong(name())) }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            return .failure(LineFault(reason: "\(name()) is not UTF-8 text"))
        }
        guard !bytes.contains(where: isControl) else {
            return .failure(LineFault(reason: "\(name()) holds a line break or another control character"))
        }
        return .success(text)
    }

    static func identifier(_ bytes: ArraySlice<UInt8>, _ name: @autoclosure () -> String) throws(LineFault) -> String {
        try plain(bytes, name()).get()
    }

    /// Checks an attribute, which is longer than other texts if its value is a part of a message.
    static func attribute(_ name: String, _ value: ArraySlice<UInt8>) throws(LineFault) {
        guard name.utf8.count <= DeviceRecord.textBytesMax else { throw tooLong("the name of an attribute") }
        guard value.count <= DeviceRecord.attributeBytesMax else {
            throw tooLong("attributes.\(name)", max: DeviceRecord.attributeBytesMax)
        }
    }

    /// Checks the size of all attributes together.
    static func attributes(bytes: Int) throws(LineFault) {
        guard bytes <= DeviceRecord.attributesBytesMax else {
            throw LineFault(
                reason: "the attributes together are longer than \(DeviceRecord.attributesBytesMax.grouped) bytes")
        }
    }

    static func checkLengths(ofTags tags: [String]) throws(LineFault) {
        guard tags.allSatisfy({ $0.utf8.count <= DeviceRecord.textBytesMax }) else { throw tooLong("a tag") }
        guard tags.reduce(0, { $0 + $1.utf8.count }) <= DeviceRecord.tagsBytesMax else {
            throw LineFault(reason: "the tags together are longer than \(DeviceRecord.tagsBytesMax.grouped) bytes")
        }
    }

    private static func tooLong(_ what: String, max bytesMax: Int = DeviceRecord.textBytesMax) -> LineFault {
        LineFault(reason: "\(what) is longer than \(bytesMax.grouped) bytes")
    }

    static func count(_ bytes: ArraySlice<UInt8>, _ name: @autoclosure () -> String) throws(LineFault) -> Int {
        guard bytes.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int32(String(decoding: bytes, as: UTF8.self))
        else { throw LineFault(reason: "\(name()) is not a whole number of at least 0") }
        return Int(number)
    }

    static func boolean(_ bytes: ArraySlice<UInt8>, _ name: @autoclosure () -> String) throws(LineFault) -> Bool {
        if bytes.count == 1 {
            if bytes.first == UInt8(ascii: "1") { return true }
            if bytes.first == UInt8(ascii: "0") { return false }
        }
        switch String(decoding: bytes, as: UTF8.self).lowercased() {
        case "true", "yes": return true
        case "false", "no": return false
        default: throw LineFault(reason: "\(name()) is neither true nor false")
        }
    }

    /// Parses ISO 8601, or seconds (10 digits) or milliseconds (13 digits) since 1970.
    static func time(
        _ bytes: [UInt8], _ range: Range<Int>, _ name: @autoclosure () -> String
    ) throws(LineFault) -> Timestamp {
        if let time = ISOTime.parse(bytes, range) { return time }
        if range.count == 10 || range.count == 13 {
            var number: Int64 = 0
            for index in range where (0x30...0x39).contains(bytes[index]) {
                number = number * 10 + Int64(bytes[index] - 0x30)
            }
            if bytes[range].allSatisfy({ (0x30...0x39).contains($0) }) {
                return Timestamp(milliseconds: range.count == 10 ? number * 1000 : number)
            }
        }
        throw LineFault(reason: "\(name()) is not a time such as 2026-11-01T09:00:00Z")
    }

    private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }

    /// Parses `a;b`, without surrounding blanks and empty tags, or a JSON list, which may contain any text.
    static func tags(_ bytes: ArraySlice<UInt8>) -> [String]? {
        if bytes.first == UInt8(ascii: "["), let list = JSONLineReader.texts(Array(bytes)) { return list }
        guard String(validating: bytes, as: UTF8.self) != nil, !bytes.contains(where: isControl) else { return nil }
        return bytes.split(separator: UInt8(ascii: ";")).map { tag in
            let tag = tag.drop { $0 == UInt8(ascii: " ") }
            let end = tag.lastIndex { $0 != UInt8(ascii: " ") }.map { $0 + 1 } ?? tag.startIndex
            return String(decoding: tag[..<end], as: UTF8.self)
        }.filter { !$0.isEmpty }
    }
}
