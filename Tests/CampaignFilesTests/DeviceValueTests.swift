import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

/// What single values of a device file do: odd ones, those that erase, and those that hold several.
@Suite(.timeLimit(.minutes(10)))
struct DeviceValueTests {
    private static let token = String(repeating: "0a1b2c3d", count: 8)

    private func read(
        _ text: String, replacesAttributes: Bool = false
    ) throws -> (devices: [DeviceRecord], counts: ReadCounts) {
        try read(Array(text.utf8), replacesAttributes: replacesAttributes)
    }

    private func read(
        _ bytes: [UInt8], replacesAttributes: Bool = false
    ) throws -> (devices: [DeviceRecord], counts: ReadCounts) {
        let folder = try TemporaryDirectory()
        defer { withExtendedLifetime(folder) {} }
        let reader = DeviceFileReader(
            path: try folder.write(bytes, to: "devices"), replacesAttributes: replacesAttributes)
        var devices: [DeviceRecord] = []
        let counts = try reader.forEachBatch(size: 100) { devices += $0 }
        return (devices, counts)
    }

    private func csv(_ column: String, _ cells: String..., replacesAttributes: Bool = false) throws -> (
        devices: [DeviceRecord], counts: ReadCounts
    ) {
        let lines = cells.map { "\(Self.token),production,com.example.a,\($0)\n" }.joined()
        return try read("token,environment,topic,\(column)\n\(lines)", replacesAttributes: replacesAttributes)
    }

    private func json(_ members: String) throws -> (devices: [DeviceRecord], counts: ReadCounts) {
        try read(
            "{\"token\": \"\(Self.token)\", \"environment\": \"production\", \"topic\": \"com.example.a\", \(members)}")
    }

    @Test(arguments: [
        ("locale", "no tag", "locale is not a language tag"),
        ("country", "Germany", "country is not a two-letter code"),
        ("time_zone", "a,b", "time_zone is not an IANA name"),
        ("app_version", "new", "app_version is not a version of dotted"),
        ("alerts_allowed", "maybe", "alerts_allowed is neither"),
        ("last_seen_at", "today", "last_seen_at is not a time"),
        ("badge", "-1", "badge is not a whole number of at least 0"),
        ("badge", "2.5", "badge is not a whole number of at least 0"),
        ("user_id", String(repeating: "u", count: 300), "user_id is longer than 256 bytes"),
        ("model", String(repeating: "m", count: 257), "model is longer than 256 bytes"),
        ("locale", "de" + String(repeating: "-a", count: 200), "locale is longer than 256 bytes"),
        ("tags", "a;" + String(repeating: "t", count: 257), "a tag is longer than 256 bytes"),
        ("attributes.plan", String(repeating: "a", count: 4097), "attributes.plan is longer than 4,096 bytes"),
        ("attributes", "no object", "attributes is not a JSON object"), ("badge", "\\N", "badge cannot be removed"),
    ])
    func `an odd value is left out with a reason, and its device is kept`(
        column: String, value: String, reason: String
    ) throws {
        let (devices, counts) = try csv(column, "", "\"\(value)\"", "\"\(value)\"")
        #expect(devices.count == 3 && counts.rejected == 0)
        let odd = try #require(counts.oddValues.first)
        #expect(counts.oddValues.count == 1 && odd.key.hasPrefix(reason), "\(odd.key)")
        #expect(odd.value.count == 2 && odd.value.firstLine == 3)
    }

    @Test(arguments: [
        ("\"tags\": {\"a\": 1}", "tags has a value of the wrong type"),
        ("\"tags\": [1]", "tags is not a list of strings"),
        ("\"tags\": [\"\(String(repeating: "🇩", count: 65))\"]", "a tag is longer than 256 bytes"),
        (
            "\"attributes\": {\"\(String(repeating: "k", count: 257))\": \"1\"}",
            "the name of an attribute is longer than 256 bytes"
        ),
        ("\"attributes\": {\"plan\": [1], \"city\": \"Rome\"}", "attributes.plan has a value of the wrong type"),
        ("\"attributes\": {\"a\": \"1\", \"a\": \"2\"}", "the key \"a\" appears twice"),
    ])
    func `an odd value of a JSON line is left out`(members: String, reason: String) throws {
        let (devices, counts) = try json(members + ", \"locale\": \"de\"")
        #expect(devices.map(\.locale) == ["de"])
        #expect(Array(counts.oddValues.keys) == [reason])
        if members.contains("Rome") { #expect(devices.first?.attributes == ["city": "Rome"]) }
    }

    @Test func `tags are cut at semicolons, and lose the blanks around them`() throws {
        let (devices, _) = try csv("tags", " a ;; b c ;\u{301}d; ", String(repeating: "x", count: 256))
        #expect(devices.map(\.tags) == [["a", "b c", "\u{301}d"], [String(repeating: "x", count: 256)]])
    }

    @Test(arguments: ["token", "environment", "topic", "installation_id"])
    func `an odd value of what says which device it is costs the line`(column: String) throws {
        let cells = [
            "token": Self.token, "environment": "production", "topic": "com.example.a", "installation_id": "a",
        ]
        let names = cells.keys.sorted()
        for odd in ["\u{1}", "\\N"] {
            let line = names.map { $0 == column ? odd : cells[$0, default: ""] }.joined(separator: ",")
            let (devices, counts) = try read("\(names.joined(separator: ","))\n\(line)\n")
            #expect(devices.isEmpty && counts.rejected == 1, "\(odd)")
        }
    }

    @Test func `bytes that are not UTF-8 are an odd value`() throws {
        let line = "\(Self.token),production,com.example.a,"
        let bytes = Array("token,environment,topic,user_id\n\(line)".utf8) + [0xFF, 0x0A] + Array("\(line)b".utf8)
        let (devices, counts) = try read(bytes)
        #expect(devices.map(\.userID) == [nil, "b"])
        #expect(Array(counts.oddValues.keys) == ["user_id is not UTF-8 text"])
    }

    @Test func `reasons beyond the fiftieth are counted together`() throws {
        let names = (0..<80).map { "a\($0)" }
        let header = "token,environment,topic," + names.map { "attributes.\($0)" }.joined(separator: ",")
        var bytes = Array("\(header)\n\(Self.token),production,com.example.a".utf8)
        for _ in names { bytes += [0x2C, 0xFF] }
        let (devices, counts) = try read(bytes)
        #expect(devices.count == 1 && counts.oddValues.count == 51)
        #expect(counts.oddValues.values.reduce(0) { $0 + $1.count } == 80)
    }

    @Test func `the marker erases, in CSV and in JSON Lines`() throws {
        let columns =
            "user_id,locale,time_zone,country,app_version,os_version,model,alerts_allowed,tags,attributes.plan"
        let (devices, _) = try csv(columns, Array(repeating: "\\N", count: 10).joined(separator: ","))
        let all: Set<DeviceRecord.Erasure> = [
            .userID, .locale, .timeZone, .country, .appVersion, .osVersion, .model, .alertsAllowed, .attribute("plan"),
        ]
        #expect(devices.first?.erased == all)
        #expect(devices.first?.tags == [] && devices.first?.locale == nil && devices.first?.attributes == nil)
        #expect(try csv("attributes", "\\N").devices.first?.erased == [.attributes])
        let (objects, _) = try json(
            #""locale": "\\N", "country": null, "attributes": {"plan": "\\N", "city": "Rome", "age": null}"#)
        #expect(objects.first?.erased == [.locale, .attribute("plan")])
        #expect(objects.first?.attributes == ["city": "Rome"])
    }

    @Test(arguments: [#"\N"#, #"\\N"#, #"\"#, "N", #"\n"#, #"a\N"#, #"\\\N"#])
    func `a value that looks like the marker is written so that it is read as itself`(value: String) throws {
        let (devices, counts) = try csv("user_id", CSVLine.text([EraseMarker.escaped(value)]))
        #expect(devices.first?.userID == value && devices.first?.erased == [] && counts.oddValues.isEmpty)
    }

    @Test func `a cell holds all attributes as an object, and tags of any text as a list`() throws {
        let cells = CSVLine.text([#"{"plan":"gold","a.b":"x,\"y\"","n":1}"#, #"["a;b"," c ","","[d"]"#])
        let (devices, counts) = try csv("attributes,tags", cells)
        #expect(devices.first?.attributes == ["plan": "gold", "a.b": "x,\"y\"", "n": "1"])
        #expect(devices.first?.tags == ["a;b", " c ", "", "[d"])
        #expect(counts.oddValues.isEmpty)
        #expect(try csv("tags", "[a;b").devices.first?.tags == ["[a", "b"])
    }

    @Test func `attributes that replace say so for each line that has a place for them`() throws {
        let (devices, _) = try csv("attributes.a,attributes.b", "1,", ",", replacesAttributes: true)
        #expect(devices.map(\.attributes) == [["a": "1"], [:]])
        #expect(devices.count { !$0.replacesAttributes } == 0)
        let without = try csv("locale", "de", replacesAttributes: true).devices
        #expect(without.first?.attributes == nil && without.first?.replacesAttributes == false)
    }

    @Test func `all attributes together, and all tags, have a limit`() throws {
        let value = String(repeating: "v", count: 4000)
        let members = (1...5).map { "\"k\($0)\": \"\(value)\"" }.joined(separator: ", ")
        let reason = "the attributes together are longer than 16,384 bytes"
        let (objects, counts) = try json("\"attributes\": {\(members)}")
        #expect(objects.first?.attributes?.count == 4 && Array(counts.oddValues.keys) == [reason])
        let columns = (1...5).map { "attributes.k\($0)" }.joined(separator: ",")
        let (devices, odd) = try csv(columns, Array(repeating: value, count: 5).joined(separator: ","))
        #expect(devices.first?.attributes?.count == 4 && Array(odd.oddValues.keys) == [reason])
        let tags = (100..<200).map { "\($0)" + String(repeating: "t", count: 200) }.joined(separator: ";")
        let (tagged, left) = try csv("tags", tags)
        #expect(tagged.first?.tags == nil)
        #expect(Array(left.oddValues.keys) == ["the tags together are longer than 16,384 bytes"])
        var record = DeviceRecord(
            token: try #require(DeviceToken(hex: Self.token)), environment: .production, topic: "com.example.a")
        record.attributes = objects.first?.attributes
        #expect(!record.hasTextsBeyondLimits)
        record.attributes?["k5"] = value
        #expect(record.hasTextsBeyondLimits)
    }

    @Test func `a badge is a number`() throws {
        #expect(try csv("badge", "0", "7", "").devices.map(\.badge) == [0, 7, nil])
        #expect(try json("\"badge\": 3").devices.first?.badge == 3)
    }
}
