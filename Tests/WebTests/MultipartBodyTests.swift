import Testing

@testable import Web

/// Forms with a file, as browsers send them, in pieces of any size.
struct MultipartBodyTests {
    private static let type = "multipart/form-data; boundary=----WebKitFormBoundaryX"

    private static func body(_ parts: [String], end: String = "--") -> [UInt8] {
        let mark = "------WebKitFormBoundaryX"
        return Array((parts.map { "\(mark)\r\n\($0)\r\n" }.joined() + mark + end + "\r\n").utf8)
    }

    private static func field(_ name: String, _ value: String) -> String {
        "Content-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)"
    }

    private static func file(_ name: String, _ content: String) -> String {
        "Content-Disposition: form-data; name=\"file\"; filename=\"\(name)\"\r\nContent-Type: text/csv\r\n\r\n\(content)"
    }

    @Test func `what is not the file is bounded, too`() throws {
        let rest = String(repeating: "x", count: 2 << 20)
        let second = Self.body([Self.file("a.csv", "a"), Self.file("b.csv", rest)])
        #expect(throws: MultipartBody.Fault.fileTooLarge) { try Self.read(second, by: 65_536) }
        let behind = Self.body([Self.file("a.csv", "a")]) + Array(rest.utf8)
        #expect(throws: MultipartBody.Fault.fileTooLarge) { try Self.read(behind, by: 65_536) }
    }

    private final class Received {
        var bytes: [UInt8] = []
    }

    private static func read(
        _ bytes: [UInt8], by count: Int = .max, type: String = type, fileBytesMax: Int = 100
    ) throws -> (form: MultipartBody.Form, file: String) {
        let received = Received()
        var body = try #require(
            MultipartBody(contentType: type, fileBytesMax: fileBytesMax) { received.bytes += $0 })
        var rest = bytes[...]
        while !rest.isEmpty {
            try body.add(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
        try body.finish()
        return (body.form, String(decoding: received.bytes, as: UTF8.self))
    }

    @Test(arguments: [1, 2, 3, 7, 29, 64, Int.max])
    func `fields and file are the same, however the bytes arrive`(count: Int) throws {
        let content = "token,topic\r\n--\r\n------WebKitFormBoundary\r\n\r\n"
        let bytes = Self.body([Self.field("key", "a/b"), Self.file("devices.csv", content), Self.field("keep", "")])
        let (form, file) = try Self.read(bytes, by: count)
        #expect(form.fields == ["key": "a/b", "keep": ""])
        #expect(form.fileName == "devices.csv" && file == content)
    }

    @Test func `a file that was not chosen has no name, and only the first file is read`() throws {
        let none = try Self.read(Self.body([Self.file("", ""), Self.field("a", "b")]))
        #expect(none.form.fileName == nil && none.file.isEmpty && none.form.fields == ["a": "b"])
        let two = try Self.read(Self.body([Self.file("C:\\x\\one.csv", "1"), Self.file("two.csv", "2")]))
        #expect(two.form.fileName == "one.csv" && two.file == "1")
    }

    @Test func `a body that is cut off, strange or too large is refused`() throws {
        let whole = Self.body([Self.file("a.csv", "content")])
        let rows: [([UInt8], MultipartBody.Fault)] = [
            (Array(whole.dropLast(6)), .malformed), (Array("no form".utf8), .malformed), ([], .malformed),
            (Self.body(["Content-Type: text/plain\r\n\r\nx"]), .malformed),
            (Self.body([Self.file("a.csv", String(repeating: "x", count: 101))]), .fileTooLarge),
            (Self.body([Self.field("a", String(repeating: "x", count: 70_000))]), .formTooLarge),
            (Self.body([String(repeating: "x", count: 9_000)]), .formTooLarge),
            (Self.body(Array(repeating: Self.field("a", "b"), count: 21)), .formTooLarge),
        ]
        for (bytes, fault) in rows {
            #expect(throws: fault) { _ = try Self.read(bytes, by: 50) }
        }
        for type in [
            "text/plain", "multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=a",
        ] {
            let isForm = MultipartBody(contentType: type, fileBytesMax: 1) { _ in } != nil
            #expect(!isForm, "\(type)")
        }
        let quoted = try Self.read(
            whole, type: "Multipart/Form-Data; charset=utf-8; boundary=\"----WebKitFormBoundaryX\"")
        #expect(quoted.file == "content")
    }
}
