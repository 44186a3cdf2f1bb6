import CZlib
import HTTPTypes
import Hummingbird
import NIOCore

/// Compresses pages, scripts, styles and reports for clients that accept gzip. Streams and data files are left as they
/// are: a compressor would hold back the events of a stream.
struct GzipResponses: RouterMiddleware {
    private static let types = ["text/html", "text/css", "text/javascript", "image/svg+xml"]
    /// Smaller bodies do not become shorter by much.
    private static let bytesMin = 1000
    private static let bytesMax = 8 << 20

    func handle(
        _ request: Request, context: WebContext, next: (Request, WebContext) async throws -> Response
    ) async throws -> Response {
        var response = try await next(request, context)
        guard let type = response.headers[.contentType], Self.types.contains(where: type.hasPrefix),
            response.headers[.contentEncoding] == nil
        else { return response }
        response.headers[.vary] = "Accept-Encoding"
        // A response to a form may show a secret beside what the form sent.
        guard request.method == .get, Self.accepts(request.headers[.acceptEncoding] ?? ""),
            let length = response.body.contentLength, (Self.bytesMin...Self.bytesMax).contains(length)
        else { return response }
        let whole = WholeBody()
        try await response.body.write(whole)
        guard let compressed = Self.gzip(whole.bytes) else {
            response.body = ResponseBody(byteBuffer: ByteBuffer(bytes: whole.bytes))
            return response
        }
        response.headers[.contentEncoding] = "gzip"
        response.headers[.contentLength] = nil
        response.body = ResponseBody(byteBuffer: ByteBuffer(bytes: compressed))
        return response
    }

    /// Returns whether the header `Accept-Encoding` allows gzip (RFC 9110, section 12.5.3).
    static func accepts(_ header: String) -> Bool {
        header.prefix(200).split(separator: ",").contains { part in
            let parameters = part.split(separator: ";").map { $0.filter { $0 != " " }.lowercased() }
            let quality = parameters.dropFirst().first { $0.hasPrefix("q=") }?.dropFirst(2)
            return ["gzip", "x-gzip"].contains(parameters.first) && quality.map { Double($0) ?? 0 > 0 } ?? true
        }
    }

    /// Returns the bytes in the format of gzip (RFC 1952), or `nil` if zlib fails.
    static func gzip(_ bytes: [UInt8]) -> [UInt8]? {
        let room = Int(fanfare_gzip_bound(UInt(bytes.count)))
        var output = [UInt8](repeating: 0, count: room)
        let length = fanfare_gzip(bytes, UInt32(bytes.count), &output, UInt32(room))
        return length > 0 ? Array(output.prefix(Int(length))) : nil
    }
}

/// Collects a body in memory.
private final class WholeBody: ResponseBodyWriter {
    private(set) var bytes: [UInt8] = []

    func write(_ buffer: ByteBuffer) { bytes += buffer.readableBytesView }

    func finish(_ trailingHeaders: HTTPFields?) {}
}
