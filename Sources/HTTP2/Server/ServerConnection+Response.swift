import CNGHTTP2

/// One header of a response. The value's bytes must stay valid until the response is submitted, which copies them.
package struct ResponseField {
    private let name: StaticString
    private let value: UnsafeRawBufferPointer
    /// Whether the field may enter the peer's header table. Use it for values that recur.
    private let isIndexed: Bool

    /// - Parameter name: in lower case.
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

extension ServerConnection {
    /// Responds with a three-digit status and ends the stream. Without a body, the headers carry END_STREAM.
    ///
    /// - Parameter isReset: whether RST_STREAM INTERNAL_ERROR follows the headers instead of the body and the end.
    package func respond(
        to request: IncomingRequest, status: Int, fields: [ResponseField], body: [UInt8] = [], isReset: Bool = false
    ) {
        guard let session = core.session else { return }
        request.responseBody = body
        request.responseOffset = 0
        request.hasResponse = true
        request.isResponseReset = isReset
        withUnsafeTemporaryAllocation(byteCount: 3, alignment: 1) { digits in
            let status = min(max(status, 100), 999)
            digits[0] = UInt8(ascii: "0") + UInt8(status / 100)
            digits[1] = UInt8(ascii: "0") + UInt8(status / 10 % 10)
            digits[2] = UInt8(ascii: "0") + UInt8(status % 10)
            withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: fields.count + 1) { values in
                values[0] = ResponseField(":status", UnsafeRawBufferPointer(digits)).native
                for (index, field) in fields.enumerated() { values[index + 1] = field.native }
                submit(values, for: request, hasBody: isReset || !body.isEmpty, to: session)
            }
        }
        core.submitted()
    }

    private func submit(
        _ values: UnsafeMutableBufferPointer<nghttp2_nv>, for request: IncomingRequest, hasBody: Bool,
        to session: OpaquePointer
    ) {
        guard hasBody else {
            nghttp2_submit_response(session, request.stream, values.baseAddress, values.count, nil)
            return
        }
        var provider = nghttp2_data_provider()
        provider.source.ptr = Unmanaged.passUnretained(request).toOpaque()
        provider.read_callback = { _, _, buffer, length, flags, source, _ in
            ServerConnection.fill(buffer, length, flags, source)
        }
        nghttp2_submit_response(session, request.stream, values.baseAddress, values.count, &provider)
    }

    private static func fill(
        _ buffer: UnsafeMutablePointer<UInt8>?, _ length: Int, _ flags: UnsafeMutablePointer<UInt32>?,
        _ source: UnsafeMutablePointer<nghttp2_data_source>?
    ) -> Int {
        guard let buffer, let flags, let pointer = source?.pointee.ptr else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let request = Unmanaged<IncomingRequest>.fromOpaque(pointer).takeUnretainedValue()
        if request.isResponseReset { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        let count = min(length, request.responseBody.count - request.responseOffset)
        request.responseBody.withUnsafeBufferPointer { body in
            guard let base = body.baseAddress else { return }
            buffer.update(from: base + request.responseOffset, count: count)
        }
        request.responseOffset += count
        if request.responseOffset == request.responseBody.count { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }
}
