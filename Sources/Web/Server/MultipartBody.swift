import Foundation
import HTTPTypes
import Hummingbird

/// Reads a form with files, `multipart/form-data` (RFC 7578), piece by piece. The file's bytes go to a closure as they
/// arrive, so that memory use does not grow with the file.
///
/// The parser reads each byte a fixed number of times. It bounds the number of parts, the head of each part, the fields
/// and the file.
struct MultipartBody {
    /// A form: its fields, and the name of the file on the person's computer. `nil` if no file was chosen.
    struct Form: Sendable {
        var fields: [String: String] = [:]
        var fileName: String?
    }

    enum Fault: Error, Hashable {
        /// The body is not a form with files, or is cut off.
        case malformed
        case fileTooLarge
        case formTooLarge
    }

    private static let partsMax = 20
    private static let headBytesMax = 8 << 10
    private static let fieldBytesMax = 64 << 10

    private enum State {
        /// Before the boundary of the first part, or directly behind a boundary.
        case betweenParts
        case head
        case field(String)
        case file
        /// Behind the file's content, or in the part of a file that was not chosen.
        case ignored
        case ended
    }

    private let delimiter: [UInt8]
    private let fileBytesMax: Int
    private let write: (ArraySlice<UInt8>) throws -> Void
    private var state = State.betweenParts
    /// The bytes that are not processed yet. The first boundary has no line end before it, so the parser adds one.
    private var bytes: [UInt8] = [0x0D, 0x0A]
    private var value: [UInt8] = []
    private var fileBytes = 0
    /// The bytes of the whole body so far, with parts that are ignored and with what follows the last boundary.
    private var bodyBytes = 0
    private static let restBytesMax = 1 << 20
    private var parts = 0
    private(set) var form = Form()

    /// Returns `nil` if the content is no form with files.
    ///
    /// - Parameters:
    ///   - contentType: the header of the request.
    ///   - write: receives the bytes of the file.
    init?(contentType: String, fileBytesMax: Int, write: @escaping (ArraySlice<UInt8>) throws -> Void) {
        guard contentType.lowercased().hasPrefix("multipart/form-data"),
            let boundary = Self.parameter("boundary", of: contentType), (1...70).contains(boundary.utf8.count)
        else { return nil }
        delimiter = Array("\r\n--\(boundary)".utf8)
        self.fileBytesMax = fileBytesMax
        self.write = write
    }

    /// Processes the next bytes of the body.
    mutating func add(_ piece: some Sequence<UInt8>) throws {
        let before = bytes.count
        bytes += piece
        bodyBytes += bytes.count - before
        guard bodyBytes <= fileBytesMax + Self.restBytesMax else { throw Fault.fileTooLarge }
        while try step() {}
    }

    /// Throws if the body is not complete.
    func finish() throws {
        guard case .ended = state else { throw Fault.malformed }
    }

    /// Processes one part of the pending bytes. Returns `false` if more bytes are needed.
    private mutating func step() throws -> Bool {
        switch state {
        case .ended:
            bytes = []
            return false
        case .betweenParts: return try passBoundary()
        case .head: return try readHead()
        case .field, .file, .ignored: return try readContent()
        }
    }

    private mutating func passBoundary() throws -> Bool {
        // A boundary, then `--` for the end or a line end.
        guard bytes.count >= delimiter.count + 2 else { return false }
        guard bytes.starts(with: delimiter) else { throw Fault.malformed }
        let rest = bytes[delimiter.count..<delimiter.count + 2]
        if rest.elementsEqual("--".utf8) {
            state = .ended
            return true
        }
        guard rest.elementsEqual([0x0D, 0x0A]) else { throw Fault.malformed }
        parts += 1
        guard parts <= Self.partsMax else { throw Fault.formTooLarge }
        // The line end stays: a head without a line ends with it.
        bytes.removeFirst(delimiter.count)
        state = .head
        return true
    }

    private mutating func readHead() throws -> Bool {
        let end = Array("\r\n\r\n".utf8)
        guard let found = bytes.prefix(Self.headBytesMax + end.count).firstRange(of: end) else {
            guard bytes.count <= Self.headBytesMax else { throw Fault.formTooLarge }
            return false
        }
        let head = String(decoding: bytes[..<found.lowerBound], as: UTF8.self)
        bytes.removeFirst(found.upperBound)
        let lines = head.split(separator: "\r\n")
        guard let line = lines.first(where: { $0.lowercased().hasPrefix("content-disposition:") }).map(String.init),
            let name = Self.parameter("name", of: line)
        else { throw Fault.malformed }
        value = []
        if let file = Self.parameter("filename", of: line) {
            // Browsers send an empty name if the person chose no file. Only one file is read.
            let isChosen = !file.isEmpty && form.fileName == nil
            if isChosen { form.fileName = String(file.split(whereSeparator: { "/\\".contains($0) }).last ?? "file") }
            state = isChosen ? .file : .ignored
        } else {
            state = .field(name)
        }
        return true
    }

    private mutating func readContent() throws -> Bool {
        guard let found = boundary() else {
            // The end may be the beginning of a boundary.
            let count = bytes.count - delimiter.count + 1
            guard count > 0 else { return false }
            try take(bytes[..<count])
            bytes.removeFirst(count)
            return false
        }
        try take(bytes[..<found])
        bytes.removeFirst(found)
        if case .field(let name) = state { form.fields[name] = String(decoding: value, as: UTF8.self) }
        state = .betweenParts
        return true
    }

    /// Returns the position of the next boundary in the pending bytes.
    private func boundary() -> Int? {
        var start = 0
        while let found = bytes[start...].firstIndex(of: 0x0D), found + delimiter.count <= bytes.count {
            if bytes[found..<found + delimiter.count].elementsEqual(delimiter) { return found }
            start = found + 1
        }
        return nil
    }

    private mutating func take(_ content: ArraySlice<UInt8>) throws {
        switch state {
        case .file:
            fileBytes += content.count
            guard fileBytes <= fileBytesMax else { throw Fault.fileTooLarge }
            try write(content)
        case .field:
            value += content
            guard value.count <= Self.fieldBytesMax else { throw Fault.formTooLarge }
        default: break
        }
    }

    /// Returns a parameter of a header, with or without quotes.
    private static func parameter(_ name: String, of header: String) -> String? {
        for part in header.split(separator: ";").dropFirst() {
            let part = part.trimmingCharacters(in: .whitespaces)
            guard part.lowercased().hasPrefix("\(name)=") else { continue }
            let value = part.dropFirst(name.count + 1)
            return value.hasPrefix("\"") ? String(value.dropFirst().prefix { $0 != "\"" }) : String(value)
        }
        return nil
    }
}

extension PageRequest {
    /// Reads a form with a file. Throws 413 if the file is too large, and 400 if the body is no such form.
    ///
    /// - Parameters:
    ///   - tooLarge: the message for a file that is too large.
    ///   - write: receives the bytes of the file.
    func formWithFile(
        bytesMax: Int, tooLarge: String, write: @escaping (ArraySlice<UInt8>) throws -> Void
    ) async throws -> MultipartBody.Form {
        let malformed = Problem(400, "bad_request", "Bad request", "the form is not complete; send it again")
        let type = request.headers[.contentType] ?? ""
        guard var body = MultipartBody(contentType: type, fileBytesMax: bytesMax, write: write) else {
            throw malformed
        }
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > bytesMax + Self.formBytesMax {
            throw Problem.tooLarge(tooLarge)
        }
        do {
            for try await piece in request.body { try body.add(piece.readableBytesView) }
            try body.finish()
        } catch let fault as MultipartBody.Fault {
            switch fault {
            case .fileTooLarge: throw Problem.tooLarge(tooLarge)
            case .formTooLarge, .malformed: throw malformed
            }
        }
        try await requireStill()
        return body.form
    }
}
