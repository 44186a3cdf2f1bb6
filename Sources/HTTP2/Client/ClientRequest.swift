import CNGHTTP2
import Glibc

/// Room for one request and its response, used again and again: between requests only contents change.
///
/// Belongs to a loop's thread. From ``ClientConnection/submit(_:)`` to its end nghttp2 refers to it without counting.
package final class ClientRequest {
    /// How a request ended.
    package enum End: Hashable, Sendable {
        /// The response is in ``status`` and ``responseBody``, whole up to END_STREAM; a 200 says all with its headers.
        case responded
        /// The peer answered with another ``status`` than 200, and the stream or the connection ended before
        /// END_STREAM: what it meant to say is not known.
        case cutOff
        /// The peer has not processed it: refused, beyond the last stream of a GOAWAY, or never written whole
        /// (RFC 9113 section 8.7).
        case notProcessed
        /// The stream was reset with this code of RFC 9113 section 7; the peer may have processed it.
        case reset(code: UInt32)
        /// The connection ended without an answer; the peer may have processed it.
        case lost
    }

    /// Responses are short; more than this is dropped.
    private static let responseBytesMax = 4096
    private static let wantedBytesMax = 256
    private static let valuesMax = 24
    private static let success = 200

    /// The owner's name for it.
    package let number: Int
    /// 0 while it is not on a connection.
    package internal(set) var stream: Int32 = 0
    /// In the list of its connection.
    var index = 0
    /// Of the response; 0 before its headers came.
    package private(set) var status = 0
    /// Copied to the connection when its turn comes.
    package var body: [UInt8] = []
    /// The last byte was handed to TLS: from here on the peer may process it.
    package private(set) var isWritten = false
    /// Asked before each part of the body leaves: a request may wait long for its turn on a slow connection. False: it
    /// is reset, and the peer does not process it.
    package var mayLeave: () -> Bool = { true }
    package private(set) var isHeldBack = false
    private(set) var isResponseComplete = false

    private var bodyOffset = 0
    private var responseBytes = ByteStore(capacity: 64)
    private let wantedName: StaticString?
    /// The value of the wanted header, its first bytes; empty where the response has none, or its status is 200.
    package private(set) var wantedValue: [UInt8] = []
    private var fields: RequestFields?
    private let ownNames: [StaticString]
    private let ownIndexing: [FieldIndexing]
    /// A buffer for each own header's value.
    private let ownValues: UnsafeMutableBufferPointer<UnsafeMutableRawBufferPointer>
    let values: UnsafeMutablePointer<nghttp2_nv>
    private(set) var valueCount = 0
    private var ownStart = 0

    /// - Parameters:
    ///   - ownFields: names in lower case of the headers that differ from request to request, a pseudo-header first.
    ///   - wanted: the name in lower case of the one header that is read of a response that is no 200.
    package init(
        number: Int, ownFields: [(name: StaticString, indexing: FieldIndexing)], wanted: StaticString? = nil
    ) {
        self.number = number
        wantedName = wanted
        ownNames = ownFields.map(\.name)
        ownIndexing = ownFields.map(\.indexing)
        ownValues = .allocate(capacity: ownFields.count)
        for index in ownValues.indices {
            ownValues.initializeElement(at: index, to: .allocate(byteCount: 128, alignment: 8))
        }
        values = .allocate(capacity: Self.valuesMax)
    }

    deinit {
        for value in ownValues { value.deallocate() }
        ownValues.deallocate()
        values.deallocate()
    }

    /// The body of the response, its first bytes. Valid until the request is used again.
    package var responseBody: UnsafeRawBufferPointer { responseBytes.bytes(from: 0, count: responseBytes.count) }

    /// At most 20 headers with the own ones, which are to be set anew.
    package func use(_ fields: RequestFields) {
        guard self.fields !== fields else { return }
        precondition(fields.leading.count + ownNames.count + fields.trailing.count <= Self.valuesMax)
        self.fields = fields
        ownStart = fields.leading.count
        valueCount = 0
        for value in fields.leading { add(value) }
        for index in ownNames.indices { add(ownValue(index)) }
        for value in fields.trailing { add(value) }
    }

    /// Gives header `index` of the own ones its value: `fill` writes exactly `count` bytes. After ``use(_:)``.
    package func setOwn(_ index: Int, count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
        if count > ownValues[index].count {
            ownValues[index].deallocate()
            ownValues[index] = .allocate(byteCount: count, alignment: 8)
        }
        fill(UnsafeMutableRawBufferPointer(rebasing: ownValues[index][..<count]))
        values[ownStart + index].value = ownValues[index].baseAddress?.assumingMemoryBound(to: UInt8.self)
        values[ownStart + index].valuelen = count
    }

    /// By the policy of each own field; `isFirst`: of its connection.
    func setOwnIndexed(isFirst: Bool) {
        for index in ownIndexing.indices {
            let indexing = ownIndexing[index]
            let isIndexed = indexing == .indexed || isFirst && indexing == .nameOnly
            values[ownStart + index].flags = nghttp2_nv.flags(isIndexed: isIndexed)
        }
    }

    private func add(_ value: nghttp2_nv) {
        (values + valueCount).initialize(to: value)
        valueCount += 1
    }

    private func ownValue(_ index: Int) -> nghttp2_nv {
        let name = ownNames[index]
        return nghttp2_nv(
            name: UnsafeMutablePointer(mutating: name.utf8Start),
            value: ownValues[index].baseAddress?.assumingMemoryBound(to: UInt8.self), namelen: name.utf8CodeUnitCount,
            valuelen: 0, flags: nghttp2_nv.flags(isIndexed: false))
    }
}

// What happens to it on a connection.
extension ClientRequest {
    func begin() {
        status = 0
        isWritten = false
        isHeldBack = false
        isResponseComplete = false
        bodyOffset = 0
        responseBytes.count = 0
        if !wantedValue.isEmpty { wantedValue = [] }
    }

    /// Writes the next part of the body; true with the last one. Nil: it may not leave any more.
    func fill(_ buffer: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool)? {
        isHeldBack = !mayLeave()
        if isHeldBack { return nil }
        let count = min(buffer.count, body.count - bodyOffset)
        body.withUnsafeBytes {
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[bodyOffset..<bodyOffset + count]))
        }
        bodyOffset += count
        isWritten = bodyOffset == body.count
        return (count, isWritten)
    }

    /// Interim answers (1xx) are passed over.
    func received(status value: UnsafeRawBufferPointer) {
        guard value.count == 3 else { return }
        let number = value.reduce(0) { $0 * 10 + Int($1) - Int(UInt8(ascii: "0")) }
        if number >= 200 { status = number }
    }

    /// Whether it is worth looking at the other headers of the response.
    var wantsFields: Bool { status > 200 && wantedName != nil }

    /// A header of the response that is no pseudo-header; of two the first counts.
    func received(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        guard let wantedName, wantedValue.isEmpty,
            name.elementsEqual(UnsafeBufferPointer(start: wantedName.utf8Start, count: wantedName.utf8CodeUnitCount))
        else { return }
        wantedValue = Array(value.prefix(Self.wantedBytesMax))
    }

    func received(body bytes: UnsafeRawBufferPointer) {
        responseBytes.append(
            UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.responseBytesMax - responseBytes.count)))
    }

    func responseEnded() { isResponseComplete = status != 0 }

    /// Which end it has come to, when its stream closed with `code`.
    func end(closedWith code: UInt32) -> End {
        if let answered { return answered }
        if code == NGHTTP2_REFUSED_STREAM.rawValue || !isWritten { return .notProcessed }
        return .reset(code: code)
    }

    /// The connection ended under it.
    var endWhenLost: End { answered ?? (isWritten ? .lost : .notProcessed) }

    /// What the answer amounts to, as far as it has come; `nil` before its headers.
    private var answered: End? {
        guard status != 0 else { return nil }
        return isResponseComplete || status == Self.success ? .responded : .cutOff
    }
}

/// How a field is to be treated by HPACK (RFC 7541 section 6.2): the caller knows which values recur.
package enum FieldIndexing: Hashable, Sendable {
    /// Enters the peer's header table: right for a value that comes again.
    case indexed
    /// The first request of a connection enters it, for its name; later ones refer to the name and spell the value out.
    case nameOnly
    /// Never enters the table: a value that comes once would only push others out.
    case literal
}

/// The headers that many requests have in common, laid out once for nghttp2, which refers to them until a request is
/// written: a request keeps its fields until it is over. Unchanging.
package final class RequestFields {
    package struct Field {
        package var name: String
        package var value: [UInt8]
        /// `nameOnly` counts as `literal` here.
        package var indexing: FieldIndexing

        /// `name` in lower case.
        package init(_ name: String, _ value: [UInt8], indexing: FieldIndexing = .indexed) {
            self.name = name
            self.value = value
            self.indexing = indexing
        }

        fileprivate var onWire: Field {
            guard indexing == .indexed, name == AuthorizationIndexing.name else { return self }
            return Field(AuthorizationIndexing.standIn, value)
        }
    }

    private let storage: UnsafeMutableRawBufferPointer
    /// `:method` and the like go before a request's own fields, the others behind them.
    let leading: [nghttp2_nv]
    let trailing: [nghttp2_nv]

    package init(_ fields: [Field]) {
        let fields = fields.map(\.onWire)
        storage = .allocate(byteCount: fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.count }, alignment: 1)
        var position = 0
        var leading: [nghttp2_nv] = []
        var trailing: [nghttp2_nv] = []
        for field in fields {
            let name = UnsafeMutableRawBufferPointer(rebasing: storage[position..<position + field.name.utf8.count])
            name.copyBytes(from: field.name.utf8)
            position += name.count
            let value = UnsafeMutableRawBufferPointer(rebasing: storage[position..<position + field.value.count])
            value.copyBytes(from: field.value)
            position += value.count
            let pair = nghttp2_nv(name, value, isIndexed: field.indexing == .indexed)
            if field.name.hasPrefix(":") { leading.append(pair) } else { trailing.append(pair) }
        }
        self.leading = leading
        self.trailing = trailing
    }

    deinit {
        storage.deallocate()
    }
}

extension nghttp2_nv {
    /// The bytes must stay until the request is over.
    init(_ name: UnsafeMutableRawBufferPointer, _ value: UnsafeMutableRawBufferPointer, isIndexed: Bool) {
        self.init(
            name: name.baseAddress?.assumingMemoryBound(to: UInt8.self),
            value: value.baseAddress?.assumingMemoryBound(to: UInt8.self), namelen: name.count, valuelen: value.count,
            flags: Self.flags(isIndexed: isIndexed))
    }

    static func flags(isIndexed: Bool) -> UInt8 {
        let kept = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue
        return UInt8(isIndexed ? kept : kept | NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
    }
}

/// Puts an `authorization` that its caller wants indexed into the peer's header table, which nghttp2 never does
/// whatever it is told (RFC 7541 section 7.1.3 leaves it to the sender). A value shared by thousands of requests, sent
/// in full each time, would be the largest part of every one.
///
/// nghttp2 is given a name that it does not know, with as many letters and, in Huffman code, as many bits; in the frame
/// on its way out the name is set right. Both sides count the same bytes for the entry, and later requests refer to it
/// by its number.
enum AuthorizationIndexing {
    static let name = "authorization"
    static let standIn = "authorizatiom"

    /// The stand-in as a new name: 9 bytes in Huffman code, with their count before them.
    private static let standInBytes: [UInt8] = [0x89, 0x1d, 0xa9, 0x9c, 0xf6, 0x1b, 0xd8, 0xd2, 0x63, 0xd3]
    /// The byte before a new name: the literal enters the table, does not, or never may (RFC 7541 section 6.2). Which
    /// of them nghttp2 writes depends on the table's size, which the peer sets: an entry that takes more than three
    /// quarters of it does not enter.
    private static let representations: [UInt8] = [0x40, 0x00, 0x10]
    /// The last byte of the true name in Huffman code: where they differ.
    private static let lastByte: UInt8 = 0xd5
    private static let frameHeadBytes = 9

    /// `chunk` holds one frame with its head; of HEADERS only such a literal is changed, whatever it does to the table.
    static func reveal(in chunk: UnsafeMutableRawBufferPointer) {
        guard chunk.count > frameHeadBytes + standInBytes.count, chunk[3] == UInt8(NGHTTP2_HEADERS.rawValue) else {
            return
        }
        guard let start = chunk.baseAddress else { return }
        var position = frameHeadBytes + 1
        while let found = memchr(start + position, Int32(standInBytes[0]), chunk.count - position) {
            position = UnsafeRawPointer(found) - UnsafeRawPointer(start)
            guard position + standInBytes.count <= chunk.count else { return }
            if memcmp(found, standInBytes, standInBytes.count) == 0, representations.contains(chunk[position - 1]) {
                chunk[position + standInBytes.count - 1] = lastByte
                return
            }
            position += 1
        }
    }
}
