import CNGHTTP2

/// The headers that many requests have in common, laid out once for nghttp2, which refers to them until a request is
/// written: a request keeps its fields until it is over. Unchanging.
package final class RequestFields {
    package struct Field {
        package var name: String
        package var value: [UInt8]
        /// Enters the peer's header table: right for values that come again.
        package var isIndexed: Bool

        /// `name` in lower case.
        package init(_ name: String, _ value: [UInt8], isIndexed: Bool = true) {
            self.name = name
            self.value = value
            self.isIndexed = isIndexed
        }

        fileprivate var onWire: Field {
            guard isIndexed, name == IndexedAuthorization.name else { return self }
            return Field(IndexedAuthorization.standIn, value)
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
            let pair = nghttp2_nv(name, value, isIndexed: field.isIndexed)
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
