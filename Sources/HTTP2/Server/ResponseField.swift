import CNGHTTP2

/// One header of an answer. The value's bytes must stay until the answer is submitted, which copies them.
package struct ResponseField {
    private let name: StaticString
    private let value: UnsafeRawBufferPointer
    /// May enter the peer's header table: right for values that come again.
    private let isIndexed: Bool

    /// `name` in lower case.
    package init(_ name: StaticString, _ value: UnsafeRawBufferPointer, isIndexed: Bool = true) {
        self.name = name
        self.value = value
        self.isIndexed = isIndexed
    }

    package init(_ name: StaticString, _ value: StaticString) {
        self.init(name, UnsafeRawBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount))
    }

    var native: nghttp2_nv {
        let flags =
            isIndexed
            ? NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue
            : NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_INDEX.rawValue
        // nghttp2 takes mutable pointers and does not write through them.
        return nghttp2_nv(
            name: UnsafeMutablePointer(mutating: name.utf8Start),
            value: UnsafeMutableRawPointer(mutating: value.baseAddress)?.assumingMemoryBound(to: UInt8.self),
            namelen: name.utf8CodeUnitCount, valuelen: value.count, flags: UInt8(flags))
    }
}
