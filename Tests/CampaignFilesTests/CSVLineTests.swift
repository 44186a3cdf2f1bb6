import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

/// What is written as CSV is read as the same cells, by this program and by others.
struct CSVLineTests {
    /// A reader of RFC 4180 with no code of the program's: the cells of one record.
    private static func cells(_ line: String) -> [String] {
        var cells: [[UInt8]] = [[]]
        var isQuoted = false
        for byte in line.utf8 {
            switch byte {
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: ",") where !isQuoted: cells.append([])
            default: cells[cells.count - 1].append(byte)
            }
        }
        return cells.map { String(decoding: $0, as: UTF8.self) }
    }

    private static let specials = [
        ",", "\"", "\n", "\r\n", ";", "=1+1", "@x", "-2+3", "+SUM(A1)", "'", "'=x", "''+y", "a",
    ]

    @Test func `a value is one cell beside every kind of scalar`() {
        for value in Self.specials.flatMap(OddScalars.around) where !value.utf8.contains(UInt8(ascii: "\"")) {
            let line = CSVLine.text(["first", value, "last"])
            let cells = Self.cells(line)
            #expect(cells.count == 3 && cells.first == "first" && cells.last == "last", "\(value.unicodeScalars)")
            #expect(cells[1].utf8.elementsEqual(value.utf8) || cells[1].utf8.elementsEqual("'\(value)".utf8))
        }
        #expect(CSVLine.text(["a\u{0301}\"\u{FE0F}b"]) == "\"a\u{0301}\"\"\u{FE0F}b\"")
    }

    @Test(arguments: [
        ("=1+1", "'=1+1"), ("+SUM(A1)", "'+SUM(A1)"), ("-x", "'-x"), ("@cmd", "'@cmd"), ("\tx", "'\tx"),
        ("\r=x", "\"'\r=x\""), ("-5", "-5"), ("+4.25", "+4.25"), ("-5+cmd", "'-5+cmd"), ("a=b", "a=b"), ("", ""),
        ("'quoted", "'quoted"), ("=\"a\",b", "\"'=\"\"a\"\",b\""), ("'=x", "''=x"), ("\u{0600}=x", "'\u{0600}=x"),
        (" =x", "' =x"), ("\u{FEFF}=x", "'\u{FEFF}=x"), ("=\u{FE0F}x", "'=\u{FE0F}x"), ("＝x", "'＝x"),
        ("+447700900123", "+447700900123"), ("-5.", "'-5."), (" a ", "\" a \""),
    ])
    func `a text that looks like a formula is marked, a number is not`(value: String, cell: String) {
        #expect(CSVLine.text([value]).utf8.elementsEqual(cell.utf8))
    }

    @Test func `what is exported is imported as it was`() throws {
        let token = String(repeating: "0a", count: 32)
        let signs = Self.specials.flatMap(OddScalars.around).filter { !$0.utf8.contains { $0 < 0x20 || $0 == 0x7F } }
        let values = signs.filter { !$0.isEmpty && $0.utf8.count <= 256 }
        let lines = ["token,environment,topic,user_id,model"]
        let text = (lines + values.map { CSVLine.text([token, "sandbox", "com.example.app", $0, $0]) })
            .joined(separator: "\n")
        let folder = try TemporaryDirectory()
        let rejects = folder.file("rejects.csv")
        let reader = DeviceFileReader(path: try folder.write(Array(text.utf8), to: "devices.csv"), rejectsPath: rejects)
        var read: [DeviceRecord] = []
        let counts = try reader.forEachBatch(size: 1000) { read += $0 }
        #expect(counts.rejected == 0 && read.count == values.count)
        for (device, value) in zip(read, values) {
            #expect(device.userID?.utf8.elementsEqual(value.utf8) == true, "\(value.unicodeScalars)")
            #expect(device.model?.utf8.elementsEqual(value.utf8) == true)
        }
    }

    @Test func `a rejected line that looks like a formula is marked`() throws {
        let folder = try TemporaryDirectory()
        let rejects = folder.file("rejects.csv")
        let text = "environment,token,topic\n=HYPERLINK(1),zz,com.example.app\n"
        let reader = DeviceFileReader(path: try folder.write(Array(text.utf8), to: "devices.csv"), rejectsPath: rejects)
        _ = try reader.forEachBatch(size: 10) { _ in }
        #expect(try Files.text(rejects).contains(",\"'"))
    }
}
