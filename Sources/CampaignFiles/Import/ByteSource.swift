import Foundation

/// The bytes of a file in order, read in chunks; what has been used is dropped, so that memory stays flat.
struct ByteSource {
    private static let chunkBytes = 1 << 18

    let path: String
    private let file: FileHandle
    private(set) var bytes: [UInt8] = []
    /// The first byte that is not used yet.
    var start = 0
    /// True when ``bytes`` reaches to the end of the file.
    private(set) var isComplete = false

    /// `-` is standard input.
    init(path: String) throws(ImportError) {
        self.path = path == "-" ? "standard input" : path
        if path == "-" {
            file = .standardInput
            return
        }
        do {
            file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        } catch {
            throw .unreadable(path: path, reason: Self.reason(error))
        }
    }

    /// Adds the next chunk behind what is not used yet.
    mutating func fill() throws(ImportError) {
        guard !isComplete else { return }
        do {
            let chunk = try file.read(upToCount: Self.chunkBytes) ?? Data()
            bytes.removeSubrange(..<start)
            start = 0
            isComplete = chunk.isEmpty
            bytes.append(contentsOf: chunk)
        } catch {
            throw .unreadable(path: path, reason: Self.reason(error))
        }
    }

    /// Like ``fill()``, after cutting what is not used yet to its first `count` bytes.
    mutating func fillKeeping(_ count: Int) throws(ImportError) {
        bytes.removeSubrange((start + count)...)
        try fill()
    }

    /// Passes over UTF-8's byte order mark; refuses UTF-16.
    mutating func skipMark() throws(ImportError) {
        while bytes.count < 3, !isComplete { try fill() }
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { start = 3 }
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            throw .header(["\(path):1:1: error: this is UTF-16 text; save it as UTF-8"])
        }
    }

    /// The first byte that is no blank, without using it.
    mutating func peek() throws(ImportError) -> UInt8? {
        while true {
            if let byte = bytes[start...].first(where: { $0 > 0x20 }) { return byte }
            if isComplete { return nil }
            try fill()
        }
    }

    func close() throws {
        if path != "standard input" { try file.close() }
    }

    private static func reason(_ error: any Error) -> String {
        let error = error as NSError
        let underlying = error.userInfo[NSUnderlyingErrorKey] as? NSError
        return (underlying ?? error).localizedDescription
    }
}
