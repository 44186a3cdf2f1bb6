import Foundation
import Testing

enum Gzip {
    /// Returns a gzip file whose blocks are stored as they are.
    static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var file: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
        var start = 0
        repeat {
            let end = min(start + 0xFFFF, bytes.count)
            let count = end - start
            file += [end == bytes.count ? 1 : 0, UInt8(count & 255), UInt8(count >> 8)]
            file += [UInt8(~count & 255), UInt8(~count >> 8 & 255)]
            file += bytes[start..<end]
            start = end
        } while start < bytes.count
        for number in [crc(bytes), UInt32(truncatingIfNeeded: bytes.count)] {
            file += (0..<4).map { UInt8(truncatingIfNeeded: number >> UInt32(8 * $0)) }
        }
        return file
    }

    /// Returns what the program `gzip` makes of the bytes.
    static func program(_ bytes: [UInt8]) -> [UInt8]? {
        let file = FileManager.default.temporaryDirectory.appending(path: "page-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        do {
            try Data(bytes).write(to: file)
            return Array(try PythonReader.run("/usr/bin/env", ["gzip", "-c"], input: file))
        } catch {
            return nil
        }
    }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
    }

    private static func crc(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { crc, byte in table[Int((crc ^ UInt32(byte)) & 255)] ^ crc >> 8 }
    }
}
