import CNGHTTP2
import Glibc

/// The buffers for one request and its response, reused for later requests. Only contents change between requests.
///
/// Only the loop's thread may use it. nghttp2 refers to it unretained from ``ClientConnection/submit(_:)`` to its end.
package final class ClientRequest {
    /// The end of a request.
    package enum End: Hashable, Sendable {
        /// The response is in ``status`` and ``responseBody``, complete up to END_STREAM. A 200 is complete with its
        /// headers.
        case responded
        /// The peer responded with a ``status`` other than 200, and the stream or the connection ended before
        /// END_STREAM. The rest of the response is unknown.
        case cutOff
        /// The peer has not processed the request. It was refused, is beyond the last stream of a GOAWAY, or was never
        /// completely written (RFC 9113 section 8.7).
        case notProcessed
        /// The stream was reset with this code of RFC 9113 section 7. The peer may have processed the request.
        case reset(code: UInt32)
        /// The connection ended with no response. The peer may have processed the request.
        case lost
    }

    /// The maximum number of kept bytes of a response's body.
    private static let responseBytesMax = 4096
    private static let wantedBytesMax = 256
    private static let valuesMax = 24
    private static let success = 200

    /// The owner's number for the request.
    package let number: Int
    /// The stream's id. 0 while the request is not on a connection.
    package internal(set) var stream: Int32 = 0
    /// The index in the connection's list.
    var index = 0
    private var progress = Progress()
    /// The body, which is copied to the connection when the request is written.
    package var body: [UInt8] = []
    /// The check before each part of the body is written, because a request may wait long on a slow connection. If it
    /// returns false, the request is reset, and the peer does not process it.
    package var mayLeave: () -> Bool = { true }
    private var responseBytes = ByteStore(capacity: 64)
    private let wantedName: StaticString?
    /// The first bytes of the wanted header's value. Empty if the response has no such header, or if its status is 200.
    package private(set) var wantedValue: [UInt8] = []
    private var fields: RequestFields?
    private let ownNames: [StaticString]
    private let ownIndexing: [FieldIndexing]
    /// One buffer for the value of each own header.
    private let ownValues: UnsafeMutableBufferPointer<UnsafeMutableRawBufferPointer>
    let values: UnsafeMutablePointer<nghttp2_nv>
    private(set) var valueCount = 0
    private var ownStart = 0

    /// - Parameters:
    ///   - ownFields: lower-case names of the headers that differ between requests, pseudo-headers first.
    ///   - wanted: the lower-case name of the one header that is read from a response with a status other than 200.
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

    /// The state of one use. It is one value, so that a new use replaces it at once.
    private struct Progress {
        var status = 0
        var isWritten = false
        var endsAt: UInt64 = 0
        var isHeldBack = false
        var isResponseComplete = false
        var bodyOffset = 0
    }

    /// The response's status. 0 before its headers arrive.
    package var status: Int { progress.status }
    /// Whether nghttp2 has taken the last byte for writing, so that the peer may process the request.
    package var isWritten: Bool { progress.isWritten }
    /// The end of the request in the output of its connection, see ``ConnectionCore/gatheredBytes``. Only of a request
    /// that ``isWritten``.
    var endsAt: UInt64 {
        get { progress.endsAt }
        set { progress.endsAt = newValue }
    }
    /// Whether ``mayLeave`` returned false.
    package var isHeldBack: Bool { progress.isHeldBack }

    /// The first bytes of the response's body. Valid until the request is reused.
    package var responseBody: UnsafeRawBufferPointer { responseBytes.bytes(from: 0, count: responseBytes.count) }

    /// Sets the shared headers. There may be ``valuesMax`` headers, including the own ones. Set the own ones again
    /// afterwards.
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

    /// Sets the value of own header `index`. `fill` must write exactly `count` bytes. Call this after ``use(_:)``.
    package func setOwn(_ index: Int, count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
        if count > ownValues[index].count {
            ownValues[index].deallocate()
            ownValues[index] = .allocate(byteCount: count, alignment: 8)
        }
        fill(UnsafeMutableRawBufferPointer(rebasing: ownValues[index][..<count]))
        values[ownStart + index].value = ownValues[index].baseAddress?.assumingMemoryBound(to: UInt8.self)
        values[ownStart + index].valuelen = count
    }

    /// Applies the indexing of each own header. `isFirst` tells whether the request is the first of its connection.
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

// Events on a connection.
extension ClientRequest {
    func begin() {
        progress = Progress()
        responseBytes.count = 0
        if !wantedValue.isEmpty { wantedValue = [] }
    }

    /// Writes the next part of the body. Returns `nil` if the part may not be sent.
    func fill(_ buffer: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool)? {
        guard mayLeave() else {
            progress.isHeldBack = true
            return nil
        }
        let start = progress.bodyOffset
        let (count, isLast) = body.withUnsafeBytes { bytes in
            let count = min(buffer.count, bytes.count - start)
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<start + count]))
            return (count, start + count == bytes.count)
        }
        progress.bodyOffset = start + count
        if isLast { progress.isWritten = true }
        return (count, isLast)
    }

    /// Records the response's status. Interim responses (1xx) are ignored.
    func received(status value: UnsafeRawBufferPointer) {
        guard value.count == 3 else { return }
        let number = value.reduce(0) { $0 * 10 + Int($1) - Int(UInt8(ascii: "0")) }
        if number >= 200 { progress.status = number }
    }

    /// Whether the other headers of the response are needed.
    var wantsFields: Bool { status > 200 && wantedName != nil }

    /// Receives a header of the response, except pseudo-headers. Only the first wanted header counts.
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

    func responseEnded() { progress.isResponseComplete = status != 0 }

    /// Returns the request's end after its stream closed with `code`.
    func end(closedWith code: UInt32) -> End {
        if let answered { return answered }
        if code == NGHTTP2_REFUSED_STREAM.rawValue || !isWritten { return .notProcessed }
        return .reset(code: code)
    }

    /// Returns the request's end if its connection ends after it has written so many bytes.
    func end(whenLostAfter writtenBytes: UInt64) -> End {
        answered ?? (isWritten && endsAt <= writtenBytes ? .lost : .notProcessed)
    }

    /// The end according to the received part of the response. `nil` before its headers.
    private var answered: End? {
        guard status != 0 else { return nil }
        return progress.isResponseComplete || status == Self.success ? .responded : .cutOff
    }
}

/// The treatment of a field by HPACK (RFC 7541 section 6.2). The caller knows which values recur.
package enum FieldIndexing: Hashable, Sendable {
    /// The field enters the peer's header table. Use this for a value that recurs.
    case indexed
    /// The first request of a connection enters the field in the table. Later requests refer to its name, and send only
    /// their value in full.
    case nameOnly
    /// The field never enters the table. A value that occurs once would only displace others.
    case literal
}

/// The headers that many requests share, laid out once for nghttp2, which refers to them until a request is written. A
/// request retains its fields until its end. Immutable.
package final class RequestFields {
    package struct Field {
        package var name: String
        package var value: [UInt8]
        /// `nameOnly` counts as `literal` here.
        package var indexing: FieldIndexing

        /// - Parameter name: in lower case.
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
    /// The pseudo-headers, such as `:method`. They go before a request's own fields, and ``trailing`` goes after them.
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
    /// Refers to the bytes, which must stay valid until the request's end.
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

/// Puts an `authorization` value into the peer's header table if the caller wants it indexed. nghttp2 never does so,
/// although RFC 7541 section 7.1.3 leaves the choice to the sender. Thousands of requests share the value. Sent in
/// full, it would be the largest part of each request.
///
/// nghttp2 gets an unknown name of the same length, also in Huffman code. ``reveal(in:)`` restores the true name in the
/// outgoing frame. Both sides count the same size for the table entry, and later requests refer to its index.
enum AuthorizationIndexing {
    static let name = "authorization"
    static let standIn = "authorizatiom"

    /// The stand-in as a literal name: the length byte and 9 bytes in Huffman code.
    private static let standInBytes: [UInt8] = [0x89, 0x1d, 0xa9, 0x9c, 0xf6, 0x1b, 0xd8, 0xd2, 0x63, 0xd3]
    /// The byte before a literal name: with, without or never indexing (RFC 7541 section 6.2). nghttp2 chooses by the
    /// size of the table, which the peer sets. It does not index an entry larger than three quarters of the table.
    private static let representations: [UInt8] = [0x40, 0x00, 0x10]
    /// The last byte of the true name in Huffman code. The other bytes are those of the stand-in.
    private static let lastByte: UInt8 = 0xd5
    private static let frameHeadBytes = 9

    /// Restores the name in `chunk`, which holds one frame with its header. Changes nothing but the literal name in a
    /// HEADERS frame, with any of the ``representations``.
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
