import CCurl

/// Gathers what libcurl reads, within the limits. Belongs to the request's thread; libcurl holds it unretained while
/// the request runs.
final class Answer {
    private let bytesMax: Int
    private let isCancelled: () -> Bool
    private(set) var headers: [String: String] = [:]
    private(set) var body: [UInt8] = []
    private(set) var isTooLarge = false

    init(bytesMax: Int, isCancelled: @escaping () -> Bool) {
        self.bytesMax = bytesMax
        self.isCancelled = isCancelled
    }

    /// False when it is too much.
    fileprivate func append(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard body.count + bytes.count <= bytesMax else {
            isTooLarge = true
            return false
        }
        body.append(contentsOf: bytes)
        return true
    }

    /// A status line begins a new answer, after a redirect or a 100.
    fileprivate func take(header line: String) {
        if line.hasPrefix("HTTP/") {
            headers = [:]
            body = []
        }
        guard let colon = line.firstIndex(of: ":") else { return }
        let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        headers[line[..<colon].lowercased()] = String(value.prefix { !$0.isNewline })
    }

    /// Hangs itself into the handle.
    func attach(to handle: UnsafeMutableRawPointer) -> [CURLcode] {
        let context = Unmanaged.passUnretained(self).toOpaque()
        return [
            fanfare_curl_set_write(
                handle, { bytes, size, count, context in Answer.given(bytes, size * count, context) { $0.append($1) } },
                context),
            fanfare_curl_set_header(
                handle,
                { bytes, size, count, context in
                    Answer.given(bytes, size * count, context) {
                        $0.take(header: String(decoding: $1, as: UTF8.self))
                        return true
                    }
                }, context),
            fanfare_curl_set_progress(
                handle,
                { context, _, _, _, _ in
                    guard let context else { return 0 }
                    return Unmanaged<Answer>.fromOpaque(context).takeUnretainedValue().isCancelled() ? 1 : 0
                }, context),
        ]
    }

    /// Fewer bytes than given end the request.
    private static func given(
        _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int, _ context: UnsafeMutableRawPointer?,
        _ body: (Answer, UnsafeBufferPointer<UInt8>) -> Bool
    ) -> Int {
        guard let bytes, let context else { return 0 }
        let answer = Unmanaged<Answer>.fromOpaque(context).takeUnretainedValue()
        let isTaken = bytes.withMemoryRebound(to: UInt8.self, capacity: count) {
            body(answer, UnsafeBufferPointer(start: $0, count: count))
        }
        return isTaken ? count : 0
    }
}
