import CNGHTTP2
import Glibc

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

    /// RFC 7541 section 6.2.1: a literal that enters the table, with a new name of 9 bytes in Huffman code: the
    /// stand-in.
    private static let literal: [UInt8] = [0x40, 0x89, 0x1d, 0xa9, 0x9c, 0xf6, 0x1b, 0xd8, 0xd2, 0x63, 0xd3]
    /// The last byte of the true name in Huffman code: where they differ.
    private static let lastByte: UInt8 = 0xd5
    private static let frameHeadBytes = 9

    /// `chunk` holds one frame with its head; of HEADERS only such a literal is changed.
    static func reveal(in chunk: UnsafeMutableRawBufferPointer) {
        guard chunk.count > frameHeadBytes + literal.count, chunk[3] == UInt8(NGHTTP2_HEADERS.rawValue) else { return }
        guard let start = chunk.baseAddress else { return }
        var position = frameHeadBytes
        while let found = memchr(start + position, Int32(literal[0]), chunk.count - position) {
            position = UnsafeRawPointer(found) - UnsafeRawPointer(start)
            guard position + literal.count <= chunk.count else { return }
            if memcmp(found, literal, literal.count) == 0 {
                chunk[position + literal.count - 1] = lastByte
                return
            }
            position += 1
        }
    }
}
