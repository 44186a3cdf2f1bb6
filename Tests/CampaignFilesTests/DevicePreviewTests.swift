import CampaignFiles
import Model
import TestSupport
import Testing

/// A file of devices, looked at before it is imported.
struct DevicePreviewTests {
    private static func preview(_ text: String) throws -> DevicePreview {
        let folder = try TemporaryDirectory()
        let path = try folder.write(Array(text.utf8), to: "devices")
        let preview = try DeviceFileReader.preview(path: path, devicesMax: 2, faultsMax: 2)
        // What the preview promises is what an import does.
        var good = 0
        let counts = try DeviceFileReader(path: path, leavesOutUnknown: true).forEachBatch(size: 3) { good += $0.count }
        #expect(counts.good == preview.good && good == preview.good && counts.rejected == preview.rejected)
        return preview
    }

    private static func token(_ number: Int) -> String { String(repeating: "a", count: 63) + "\(number)" }

    @Test func `columns, samples, counts and errors of CSV`() throws {
        let lines = (1...4).map { "\(Self.token($0)),production,com.example.app,blue,i-\($0)\n" }
        let bad = (1...3).map { "x\($0),production,com.example.app,blue,i\n" }
        let preview = try Self.preview(
            "token,environment,topic,colour,installation_id\n" + lines.joined() + bad.joined() + "only one field\n")
        #expect(preview.columns == ["token", "environment", "topic", "installation_id"])
        #expect(preview.unknownColumns == ["colour"])
        #expect(preview.devices.map(\.installationID) == ["i-1", "i-2"])
        #expect(preview.good == 4 && preview.rejected == 4 && preview.topics == ["com.example.app"])
        #expect(preview.faults.map(\.line) == [6, 7])
    }

    @Test func `keys of JSON Lines, also those that only a later line has`() throws {
        let lines = [
            "{\"token\": \"\(Self.token(1))\", \"environment\": \"production\", \"topic\": \"com.example.a\"}",
            "{\"token\": \"\(Self.token(2))\", \"environment\": \"sandbox\", \"topic\": \"com.example.b\", \"hue\": [1]}",
            "{\"token\": 1}", "no JSON",
        ]
        let preview = try Self.preview(lines.joined(separator: "\n") + "\n")
        #expect(preview.columns == ["token", "environment", "topic"] && preview.unknownColumns == ["hue"])
        #expect(preview.good == 2 && preview.rejected == 2 && preview.topics == ["com.example.a", "com.example.b"])
    }

    @Test func `the whole file counts, also after many lines that cannot be used`() throws {
        let bad = String(repeating: "x,production,com.example.app\n", count: 10_001)
        let preview = try Self.preview(
            "token,environment,topic\n" + bad + "\(Self.token(1)),production,com.example.other\n")
        #expect(preview.good == 1 && preview.rejected == 10_001 && preview.topics == ["com.example.other"])
        #expect(preview.faults.map(\.line) == [2, 3])
    }

    @Test func `lines of a topic that the caller may not import are rejected`() throws {
        let folder = try TemporaryDirectory()
        let lines = ["app", "other", "app.voip"].enumerated().map {
            "\(Self.token($0)),production,com.example.\($1)\n"
        }
        let path = try folder.write(Array(("token,environment,topic\n" + lines.joined()).utf8), to: "devices")
        let rejects = folder.file("rejects")
        let reader = DeviceFileReader(path: path, rejectsPath: rejects) { $0.isTopic(of: "com.example.app") }
        var topics: [String] = []
        let counts = try reader.forEachBatch(size: 10) { topics += $0.map(\.topic) }
        #expect(topics == ["com.example.app", "com.example.app.voip"] && counts.rejected == 1)
        #expect(try Files.text(rejects).contains("com.example.other"))
    }

    @Test(arguments: [
        "", "name,colour\nann,blue\n", "\(String(repeating: "a", count: 64)),production,com.example.app\n",
    ])
    func `a file without its columns is refused`(text: String) throws {
        #expect(throws: ImportError.self) { _ = try Self.preview(text) }
    }

    @Test func `an import that a person starts by a command refuses unknown columns, as before`() throws {
        let folder = try TemporaryDirectory()
        let text = "token,environment,topic,colour\n\(Self.token(1)),production,com.example.app,blue\n"
        let path = try folder.write(Array(text.utf8), to: "devices")
        #expect(throws: ImportError.self) { _ = try DeviceFileReader(path: path).forEachBatch(size: 1) { _ in } }
    }
}
