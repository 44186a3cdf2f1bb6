import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

/// Whatever a file holds: no crash, and read = good + rejected with one reject per bad line.
@Suite(.timeLimit(.minutes(10)))
struct DeviceImportRandomTests {
    private static let good = "\(DeviceImportTests.token),production,com.example.a,DE"
    private static let goodLine =
        "{\"token\": \"\(DeviceImportTests.token)\", \"environment\": \"sandbox\", \"topic\": \"com.example.a\"}"

    private func garbage(_ random: inout SeededGenerator) -> [UInt8] {
        let pieces: [[UInt8]] = [
            [0x2C], [0x22], [0x22, 0x22], [0x0D], [0x3B], [0x09], [0x20], [0xFF], [0xC3], [0x00], [0x5C], [0x7B],
            [0x7D],
            [0x5B], [0x3A], Array(DeviceImportTests.token.utf8), Array("production".utf8), Array("com.example.a".utf8),
            Array("\"token\"".utf8), Array("DE".utf8), Array("\\u12".utf8), Array("null".utf8), Array("é".utf8),
        ]
        return (0..<Int.random(in: 0...12, using: &random)).flatMap { _ in pieces.randomElement(using: &random) ?? [] }
    }

    private func read(_ bytes: [UInt8], _ folder: TemporaryDirectory) throws -> (ReadCounts, Int, String) {
        let rejects = folder.file("rejects.csv")
        let reader = DeviceFileReader(path: try folder.write(bytes, to: "devices"), rejectsPath: rejects)
        var devices = 0
        let counts = try reader.forEachBatch(size: 7) { devices += $0.count }
        return (counts, devices, counts.rejected > 0 ? try Files.text(rejects) : "")
    }

    @Test(arguments: 0..<150) func `any mixture of good and random CSV lines loses no good one`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var bytes = Array("token,environment,topic,country\n".utf8)
        var expected = 0
        for _ in 0..<60 {
            let isGood = Bool.random(using: &random)
            expected += isGood ? 1 : 0
            bytes += isGood ? Array(Self.good.utf8) : garbage(&random)
            bytes.append(0x0A)
        }
        let (counts, devices, rejects) = try read(bytes, try TemporaryDirectory())
        #expect(counts.good == devices)
        #expect(devices >= expected)
        #expect(counts.read == counts.good + counts.rejected)
        #expect(!rejects.contains(DeviceImportTests.token))
        #expect(rejectedLines(rejects).count == counts.rejected)
        #expect(rejectedLines(rejects) == rejectedLines(rejects).sorted())
    }

    @Test(arguments: 0..<150) func `any mixture of good and random JSON lines loses no good one`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed) + 1000)
        var bytes = Array("{}\n".utf8)
        var expected = 0
        for _ in 0..<60 {
            if Bool.random(using: &random) {
                bytes += Array(Self.goodLine.utf8)
                expected += 1
            } else {
                bytes += garbage(&random).filter { $0 != 0x0A }
            }
            bytes.append(0x0A)
        }
        let (counts, devices, rejects) = try read(bytes, try TemporaryDirectory())
        #expect(counts.good == expected)
        #expect(devices == expected)
        #expect(rejectedLines(rejects).count == counts.rejected)
        #expect(!rejects.contains(DeviceImportTests.token))
    }

    /// The line numbers of a rejects file, read with care for texts that span lines.
    private func rejectedLines(_ text: String) -> [Int] {
        var numbers: [Int] = []
        var isQuoted = false
        var isFirst = true
        var line = ""
        for scalar in text.unicodeScalars {
            if scalar == "\"" { isQuoted.toggle() }
            if scalar == "\n", !isQuoted {
                if !isFirst { numbers.append(Int(line.prefix { $0 != "," }) ?? -1) }
                isFirst = false
                line = ""
            } else {
                line.unicodeScalars.append(scalar)
            }
        }
        return numbers
    }
}
