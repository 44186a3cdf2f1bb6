import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct DeviceImportTests {
    static let token = String(repeating: "0a1B2c3D", count: 8)

    /// Everything a reader gave for a text.
    private struct Import {
        var devices: [DeviceRecord] = []
        var counts = ReadCounts()
        var rejects = ""
    }

    private func read(_ text: String, size: Int = 100) throws -> Import {
        try read(Array(text.utf8), size: size)
    }

    private func read(_ bytes: [UInt8], size: Int = 100) throws -> Import {
        let folder = try TemporaryDirectory()
        let rejects = folder.file("rejects.csv")
        let reader = DeviceFileReader(path: try folder.write(bytes, to: "devices"), rejectsPath: rejects)
        var result = Import()
        result.counts = try reader.forEachBatch(size: size) { batch in
            #expect((1...size).contains(batch.count))
            result.devices += batch
        }
        #expect(result.counts.good == result.devices.count)
        #expect(FileManager.default.fileExists(atPath: rejects) == (result.counts.rejected > 0))
        if result.counts.rejected > 0 { result.rejects = try Files.text(rejects) }
        return result
    }

    private func expectWhole(_ device: DeviceRecord?) throws {
        let device = try #require(device)
        #expect(device.token.hex == Self.token.lowercased())
        #expect(device.environment == .sandbox)
        #expect(device.topic == "com.example.wendercast")
        #expect(device.installationID == "i-1")
        #expect(device.userID == "u \"1\", x")
        #expect(device.locale == "pt_BR")
        #expect(device.timeZone == "America/Sao_Paulo")
        #expect(device.country == "BR")
        #expect(device.appVersion == "4.10")
        #expect(device.osVersion == "18.1")
        #expect(device.model == "iPhone15,2")
        #expect(device.alertsAllowed == false)
        #expect(device.registeredAt == Timestamp(milliseconds: 1_793_491_200_000))
        #expect(device.lastSeenAt == Timestamp(milliseconds: 1_793_491_200_500))
        #expect(device.tags == ["a", "b c"])
        #expect(device.attributes == ["plan": "pro", "Größe": "1"])
    }

    @Test func `every column of a CSV file arrives`() throws {
        let result = try read(
            """
            token,environment,topic,installation_id,user_id,locale,time_zone,country,app_version,os_version,model,\
            alerts_allowed,registered_at,last_seen_at,tags,attributes.plan,attributes.Größe
            \(Self.token),sandbox,com.example.wendercast,i-1,"u ""1"", x",pt_BR,America/Sao_Paulo,BR,4.10,18.1,\
            "iPhone15,2",false,2026-11-01,2026-11-01T02:00:00.500+02:00,a; b c;,pro,1
            """)
        try expectWhole(result.devices.first)
        #expect(result.counts.read == 1)
    }

    @Test func `every key of a JSON line arrives`() throws {
        let result = try read(
            """
            {"token": "\(Self.token)", "environment": "sandbox", "topic": "com.example.wendercast",\
             "installation_id": "i-1", "user_id": "u \\"1\\", \\u0078", "locale": "pt_BR",\
             "time_zone": "America\\/Sao_Paulo", "country": "BR", "app_version": 4.10, "os_version": "18.1",\
             "model": "iPhone15,2", "alerts_allowed": false, "registered_at": 1793491200,\
             "last_seen_at": 1793491200500, "tags": ["a", "b c"],\
             "attributes": {"plan": "pro"}, "attributes.Größe": 1}
            """)
        try expectWhole(result.devices.first)
    }

    private func device(_ rest: String = "") -> String { "\(Self.token),production,com.example.a\(rest)" }

    @Test(arguments: [",", ";", "\t"], ["\n", "\r\n", "\r"])
    func `delimiter and line ends are found out`(delimiter: String, lineEnd: String) throws {
        let lines = ["token,environment,topic,country", device(",DE"), "", device(",AT"), " "]
        let text = lines.joined(separator: lineEnd).replacing(",", with: delimiter)
        let result = try read("\u{FEFF}" + text)
        #expect(result.devices.map(\.country) == ["DE", "AT"])
        #expect(result.counts == (try read(text + lineEnd)).counts)
    }

    @Test func `empty fields say nothing, and so do columns that are absent`() throws {
        let result = try read("token,environment,topic,locale,tags,attributes.a,attributes\n\(device(",,,,"))")
        #expect(result.devices.first?.locale == nil)
        #expect(result.devices.first?.tags == nil)
        #expect(result.devices.first?.attributes == nil)
        #expect(result.devices.first?.erased == [])
        let without = try read("token,environment,topic\n\(device())")
        #expect(without.devices.first?.tags == nil)
        #expect(without.devices.first?.attributes == nil)
    }

    @Test func `a token as old apps print it is read`() throws {
        let spaced = "<" + (0..<8).map { _ in "0a1B2c3D" }.joined(separator: " ") + ">"
        let result = try read("token,environment,topic\n\(spaced),production,com.example.a")
        #expect(result.devices.first?.token.hex == Self.token.lowercased())
    }

    @Test(arguments: [
        ("token,environment,topik", "unknown column \"topik\"; did you mean \"topic\"?"),
        ("token,environment,topic,langauge", "unknown column \"langauge\""),
        ("token,environment", "the column \"topic\" is missing"),
        ("token,environment,topic,token", "the column \"token\" appears twice"),
        ("\(token),production,com.example.a", "1:1: error: the first line is a device, not the column names; begin"),
        ("", "the file is empty"),
        ("token,\"environment,topic", "header: a quote is opened but not closed"),
    ])
    func `a wrong header stops the import before any line`(header: String, message: String) throws {
        let error = #expect(throws: ImportError.self) { _ = try read(header + "\n" + device() + "\n") }
        if header.isEmpty {
            let empty = #expect(throws: ImportError.self) { _ = try read("") }
            #expect(empty?.description.contains(message) == true)
        } else {
            #expect(error?.description.contains(message) == true)
        }
    }

    @Test(arguments: PushType.allCases)
    func `the token of a push type with a suffix stands under the topic with it`(type: PushType) throws {
        let campaign = Campaign(name: "c", topic: "com.example.a", pushType: type, template: "t")
        let line = "\(Self.token),production,\(campaign.deviceTopic)"
        let result = try read("token,environment,topic\n\(line)\n")
        #expect(result.devices.map(\.topic) == ["com.example.a" + type.topicSuffix])
    }

    @Test(arguments: [
        ("zz,production,com.example.a,", "token holds a character that is not a hex digit"),
        ("abc,production,com.example.a,", "token has an odd number of hex digits"),
        ("abcd,production,com.example.a,", "token has 2 bytes, not 32 to 100"),
        (",production,com.example.a,", "token is missing"),
        ("\(token),prod,com.example.a,", "environment is neither production nor sandbox"),
        ("\(token),production,wendercast,", "topic is not a bundle id"),
        ("\(token),production,com.example.a", "3 fields, but the header has 4"),
        ("\(token),production,com.example.a,DE,x", "5 fields, but the header has 4"),
        ("\(token),production,com.example.a,\"DE\"x", "text after a closing quote"),
        ("\(token),production,com.example.a,\"DE", "a quote is opened but not closed"),
    ])
    func `a bad line is rejected with its number and reason, the good ones are kept`(
        line: String, reason: String
    ) throws {
        let text = "token,environment,topic,country\n\(device(",AT"))\n\n\(line)\n\(device(",DE"))\n"
        let result = try read(text)
        #expect(result.devices.map(\.country) == ["AT", "DE"])
        #expect(result.counts.rejected == 1)
        let rejects = result.rejects.split(separator: "\n")
        #expect(rejects.first == "line,reason,original text")
        #expect(rejects.last?.hasPrefix("4,\"\(reason)\",\"") == true)
    }

    @Test(arguments: [
        ("{", "JSON: the line ends where a key in quotes should be"), ("[]", "the line is not a JSON object"),
        ("{\"tokn\": 1}", "unknown key \"\"tokn\"\"; did you mean \"\"token\"\"?"),
        ("{} x", "text after the JSON object"),
        ("{\"token\": \"a", "a JSON string is not closed"), ("{}", "token is missing"),
        ("{\"token\": \"\(token)\", \"locale\": \"de\", \"locale\": \"fr\"}", "the key \"\"locale\"\" appears twice"),
        ("{\"a\": [[[[[[1]]]]]]}", "JSON nested too deeply"), ("{\"user_id\": \"\\ud800\"}", "half a surrogate pair"),
    ])
    func `a bad JSON line is rejected with its reason`(line: String, reason: String) throws {
        let good = "{\"token\": \"\(Self.token)\", \"environment\": \"production\", \"topic\": \"com.example.a\"}"
        let result = try read("\(good)\n\(line)\n\(good)")
        #expect(result.counts.good == 2)
        #expect(result.counts.rejected == 1)
        #expect(result.rejects.contains("\n2,\"\(reason)"))
    }

    @Test func `quotes may span lines and line numbers stay right`() throws {
        let result = try read(
            "token,environment,topic,attributes.a\n\(device(",\"a\nb\r\nc\""))\n\(device())\n\(device(",d"))\n")
        #expect(result.devices.map { $0.attributes?["a"] } == ["a\nb\r\nc", "d"])
        #expect(result.rejects.contains("\n5,\"3 fields"))
    }

    @Test func `a quote that is closed in a later line swallows no good line`() throws {
        let result = try read(
            "token,environment,topic,user_id\n\(device(",\"a"))\n\(device(",b"))\nc\",d\n\(device(",\"e"))\n\(device(",f\""))\n"
        )
        #expect(result.devices.map(\.userID) == ["b", "f\""])
        #expect(result.rejects.split(separator: "\n").dropFirst().map { $0.prefix { $0 != "," } } == ["2", "4", "5"])
    }

    @Test func `a quote that is never closed costs its own line only`() throws {
        let many = Array(repeating: device(",DE"), count: 5000).joined(separator: "\n")
        let result = try read("token,environment,topic,country\n\(device(",\"DE"))\n\(many)\n")
        #expect(result.counts.good == 5000)
        #expect(result.rejects.contains("\n2,\"the line or its quotes do not end within 65536 bytes"))
    }

    @Test func `a line without end is rejected and the next one read`() throws {
        let long = String(repeating: "x", count: 1_000_000)
        let result = try read("token,environment,topic,country\n\(long)\n\(device(",DE"))\n\(long)")
        #expect(result.counts.good == 1)
        #expect(result.counts.rejected == 2)
    }

    @Test(arguments: [
        "\(token)", "<\(token)>", "\(token)x,production,com.example.a,DE", "\"\(token),production", "DE,\(token),AT",
        "{\"token\": \"\(token)\", \"environment\": \"x\"}", "{\"token\":\"\(token)", "prefix\(token)suffix",
        "0a1B2c3D 0a1B2c3D 0a1B2c3D 0a1B2c3D 0a1B2c3D 0a1B2c3D 0a1B2c3D 0a1B2c3D",
        "this-is-a-token-that-is-no-hex-0a1B,production,com.example.a,DE",
    ])
    func `no rejected line shows more than the end of a token`(line: String) throws {
        let isJSON = line.hasPrefix("{")
        let result = try read((isJSON ? "{}\n" : "token,environment,topic,country\n") + line + "\n")
        #expect(result.counts.good == 0)
        #expect(!result.rejects.contains("0a1B2c3D0a1B2c3D"))
        #expect(!result.rejects.contains("0a1B2c3D 0a1B2c3D"))
        #expect(!result.rejects.contains("this-is-a-token"))
        #expect(result.rejects.contains("…"))
        if line.hasSuffix(",DE") { #expect(result.rejects.contains("DE\"\n")) }
    }

    @Test func `UTF-16 and missing files are refused with a reason`() throws {
        let utf16 = #expect(throws: ImportError.self) { _ = try read([0xFF, 0xFE, 0x74, 0x00]) }
        #expect(utf16?.description.contains("save it as UTF-8") == true)
        let missing = #expect(throws: ImportError.self) {
            _ = try DeviceFileReader(path: "/nowhere/devices.csv").forEachBatch(size: 1) { _ in }
        }
        #expect(missing?.description.hasPrefix("/nowhere/devices.csv: cannot be read") == true)
    }

    @Test func `the rejects file may not be the file being read`() throws {
        let folder = try TemporaryDirectory()
        let path = try folder.write("token,environment,topic\n\(device())", to: "devices.csv")
        #expect(throws: ImportError.self) {
            _ = try DeviceFileReader(path: path, rejectsPath: folder.file("./devices.csv")).forEachBatch(size: 1) { _ in
            }
        }
        #expect(try Files.text(path).hasSuffix(device()))
    }

    @Test func `a body that waits gets the same batches`() async throws {
        let folder = try TemporaryDirectory()
        let lines = Array(repeating: device(), count: 25).joined(separator: "\n")
        let path = try folder.write("token,environment,topic\n\(lines)", to: "devices.csv")
        var sizes: [Int] = []
        let counts = try await DeviceFileReader(path: path).forEachBatch(size: 10) { batch in
            await Task.yield()
            sizes.append(batch.count)
        }
        #expect(sizes == [10, 10, 5])
        #expect(counts.good == 25)
    }

    @Test func `an error of the body ends the import`() throws {
        struct Full: Error {}
        let folder = try TemporaryDirectory()
        let path = try folder.write("token,environment,topic\n\(device())\n", to: "devices.csv")
        #expect(throws: Full.self) {
            _ = try DeviceFileReader(path: path).forEachBatch(size: 1) { _ in throw Full() }
        }
    }
}
