import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// The backend of an app registers devices: one by one, and many by a stream that is answered while it is read.
@Suite(.timeLimit(.minutes(10)))
struct DeviceRegistrationTests {
    private static let address = "/devices/com.example.app/phone-1"

    private static func token(_ number: Int) -> String {
        String(repeating: "ab", count: 28) + String(format: "%08x", number)
    }

    private static func body(_ number: Int, _ more: String = "") -> String {
        "{\"token\": \"\(token(number))\", \"environment\": \"production\"\(more)}"
    }

    private static func line(_ number: Int, topic: String = PipelineScene.topic) -> String {
        "{\"token\":\"\(token(number))\",\"environment\":\"production\",\"topic\":\"\(topic)\","
            + "\"installation_id\":\"phone-\(number)\"}\n"
    }

    // MARK: One

    @Test func `a device is registered, refreshed, and given another token`() async throws {
        try await WebScene.with { scene in
            let new = try await scene.api(
                "PUT", Self.address, as: .registrar,
                body: Self.body(1, ",\n \"locale\": \"de-AT\",\n \"tags\": [\"beta\"]"))
            #expect(new.status == 201)
            let device: DeviceResult = try new.result()
            #expect(device.locale == "de-AT" && device.tags == ["beta"] && device.installationId == "phone-1")
            #expect(device.token.hasSuffix("00000001"))
            #expect(!new.text.contains(Self.token(1)))
            let same = try await scene.api("PUT", Self.address, as: .registrar, body: Self.body(1))
            #expect(same.status == 200)
            let other = try await scene.api("PUT", Self.address, as: .registrar, body: Self.body(2))
            #expect(other.status == 200)
            let stored = try #require(try await scene.store.devices(matching: "phone-1").first)
            #expect(stored.record.token.hex == Self.token(2))
            #expect(stored.record.locale == "de-AT")
            #expect(try await scene.store.device(thatHad: stored.record.token) == nil)
        }
    }

    @Test(arguments: [
        ("{\"environment\": \"production\"}", "token is missing"),
        ("{\"token\": \"xyz\", \"environment\": \"production\"}", "token holds a character that is not a hex digit"),
        (
            body(1, ", \"topic\": \"com.example.other\""),
            "topic is \"com.example.other\", the URL has \"com.example.app\""
        ),
        (body(1, ", \"installation_id\": \"phone-2\""), "installation_id differs from the one in the URL"),
        (body(1, ", \"local\": \"de\""), "unknown key \"local\"; did you mean \"locale\"?"),
        ("[]", "the line is not a JSON object"), ("", "the line is not a JSON object"),
        (body(1) + "{}", "text after the JSON object"),
    ])
    func `a bad one is refused in the import's words`(body: String, words: String) async throws {
        try await WebScene.with { scene in
            let answer = try await scene.api("PUT", Self.address, as: .registrar, body: body)
            #expect(answer.status == 422)
            #expect(answer.problem?.detail == words)
            #expect(!answer.text.contains(Self.token(1)))
            #expect(try await scene.store.deviceCounts().isEmpty)
        }
    }

    @Test func `one that is too large is refused`() async throws {
        try await WebScene.with { scene in
            let long = Self.body(1, ", \"model\": \"\(String(repeating: "x", count: 70_000))\"")
            let answer = try await scene.api("PUT", Self.address, as: .registrar, body: long)
            #expect(answer.status == 413)
        }
    }

    @Test func `a token that went to another installation later is not taken from it`() async throws {
        try await WebScene.with { scene in
            let later = Self.body(1, ", \"registered_at\": \"2026-11-02T00:00:00Z\"")
            #expect(try await scene.api("PUT", Self.address, as: .registrar, body: later).status == 201)
            let earlier = Self.body(1, ", \"registered_at\": \"2026-11-01T00:00:00Z\"")
            let answer = try await scene.api("PUT", "/devices/com.example.app/phone-2", as: .registrar, body: earlier)
            #expect(answer.status == 409)
            #expect(answer.problem?.detail.contains("was later registered with another installation") ?? false)
            #expect(!answer.text.contains(Self.token(1)))
            #expect(!answer.text.contains("phone-1"))
        }
    }

    @Test func `a token of one app registers its devices and those with a suffix, no others`() async throws {
        try await WebScene.with { scene in
            let own = try await scene.bearer(.registrar, topic: PipelineScene.topic)
            for (topic, status) in [
                (PipelineScene.topic, 201), (PipelineScene.topic + ".voip", 201), ("com.example.application", 403),
                ("com.example.other", 403),
            ] {
                let answer = try await scene.api(
                    "PUT", "/devices/\(topic)/phone-\(status)", body: Self.body(1), headers: own)
                #expect(answer.status == status, "\(topic)")
            }
            let lines = Self.line(5) + Self.line(6, topic: "com.example.other")
            let answer = try await scene.lines("/devices", lines, headers: own)
            let results = try Self.results(answer.text)
            #expect(results.map(\.status) == ["inserted", "rejected", "done"])
            #expect(results[1].reason?.contains("com.example.other") ?? false)
        }
    }

    // MARK: Many

    @Test func `each line of a stream is answered, bad ones among the good`() async throws {
        try await WebScene.with { scene in
            let lines =
                "\u{FEFF}" + Self.line(1) + "\n" + "nonsense\n" + Self.line(1)
                + Self.line(2).replacing("phone-2", with: "phone-1")
                + "{\"token\": \"\(Self.token(9))\", \"what\": 1}\n" + String(Self.line(3).dropLast())
            let answer = try await scene.lines("/devices", as: .registrar, lines)
            #expect(answer.status == 200)
            #expect(answer.header("content-type") == "application/x-ndjson")
            let results = try Self.results(answer.text)
            #expect(
                results.map(\.status) == [
                    "inserted", "rejected", "unchanged", "token_replaced", "rejected", "inserted", "done",
                ])
            #expect(results.map(\.line) == [1, 3, 4, 5, 6, 7, nil])
            #expect(results[1].reason == "the line is not a JSON object")
            #expect(results.last?.counts?.read == 6)
            #expect(!answer.text.contains(Self.token(9)))
            let brief = try await scene.lines("/devices?answers=rejected", as: .registrar, lines)
            #expect(try Self.results(brief.text).map(\.status) == ["rejected", "rejected", "done"])
            let audit = try await scene.store.events(run: nil, since: nil, limit: 1)
            #expect(audit.first?.actor.name == "registrar (token)")
            #expect(audit.first?.kind == "devices_imported")
        }
    }

    @Test func `a line is answered before the next one is sent`() async throws {
        try await WebScene.with { scene in
            let connection = try RawConnection(port: scene.port)
            try await connection.begin("POST", "/api/v1/devices", token: scene.secrets.secret(of: .registrar))
            for number in 1...3 {
                let line = Self.line(number)
                try await connection.chunk(String(line.prefix(40)))
                try await connection.chunk(String(line.dropFirst(40)))
                let answer = try await connection.receive(until: "\"line\":\(number),")
                #expect(answer.contains("{\"line\":\(number),\"status\":\"inserted\"}"))
                #expect(try await scene.store.deviceCounts().first?.count == number)
            }
            try await connection.endOfChunks()
            let rest = try await connection.receive(until: "0\r\n\r\n")
            #expect(rest.contains("\"status\":\"done\""))
        }
    }

    @Test func `a giant line and bad UTF-8 are answered, and the rest goes on`() async throws {
        try await WebScene.with { scene in
            let connection = try RawConnection(port: scene.port)
            try await connection.begin("POST", "/api/v1/devices", token: scene.secrets.secret(of: .registrar))
            for _ in 0..<40 { try await connection.chunk([UInt8](repeating: UInt8(ascii: "x"), count: 100_000)) }
            try await connection.chunk("\n" + Self.line(1).replacing("phone-1", with: "phone-\u{7F}"))
            var bad = Array(Self.line(2).utf8)
            if let place = bad.firstIndex(of: UInt8(ascii: "2")) { bad[place] = 0xFF }
            let broken = Array(String(Self.line(3).dropLast(3)).utf8) + [0xC3, 0x28] + Array("\"}\n".utf8)
            try await connection.chunk(bad + broken + Array(Self.line(4).utf8))
            try await connection.endOfChunks()
            let text = try await connection.receive(until: "done")
            #expect(text.contains("{\"line\":1,\"reason\":\"longer than 65536 bytes\",\"status\":\"rejected\"}"))
            #expect(
                text.contains(
                    "{\"line\":2,\"reason\":\"installation_id holds a line break or another control character\""))
            #expect(text.contains("\"line\":3,\"reason\""))
            #expect(
                text.contains("{\"line\":4,\"reason\":\"installation_id is not UTF-8 text\",\"status\":\"rejected\"}"))
            #expect(text.contains("{\"line\":5,\"status\":\"inserted\"}"))
        }
    }

    @Test func `what was answered is stored when the client goes away in the middle`() async throws {
        try await WebScene.with { scene in
            let connection = try RawConnection(port: scene.port)
            try await connection.begin("POST", "/api/v1/devices", token: scene.secrets.secret(of: .registrar))
            try await connection.chunk((1...3_000).map { Self.line($0) }.joined())
            let answers = try await connection.receive(until: "\"line\":2000,")
            try await connection.chunk(String(Self.line(9_999).dropLast(3)))
            connection.leave()
            try await scene.audited("devices_imported")
            let answered = answers.split(separator: "\n").count { $0.contains("\"inserted\"") }
            let stored = try await scene.store.deviceCounts().first?.count ?? 0
            #expect(answered >= 2_000 && stored >= answered && stored <= 3_000)
            #expect(try await scene.store.devices(matching: "phone-9999").isEmpty)
        }
    }

    @Test func `a store that is locked for too long says which lines were not stored`() async throws {
        try await WebScene.with { scene in
            // Nobody makes the indexes that another process has put off: it is at its first load.
            let loading = try SQLiteFileStore(path: scene.store.path)
            let load = try await loading.deviceImport()
            let records = try (0..<10_000).map { number in
                DeviceRecord(
                    token: try #require(DeviceToken(hex: Self.token(100_000 + number))), environment: .production,
                    topic: PipelineScene.topic)
            }
            _ = try await load.register(records, now: scene.sending.clock.now)
            let answer = try await scene.lines("/devices", as: .registrar, Self.line(1) + "x\n" + Self.line(2))
            let results = try Self.results(answer.text)
            #expect(results.map(\.status) == ["not_stored", "rejected", "not_stored", "done"])
            #expect(results[0].reason?.contains("is locked by another process") ?? false)
            #expect(results.last?.counts?.notStored == 2)
            let one = try await scene.api("PUT", Self.address, as: .registrar, body: Self.body(1))
            #expect(one.status == 503)
            #expect(one.header("retry-after") == "5")
            _ = try await load.finish(now: scene.sending.clock.now)
            let again = try await scene.lines("/devices", as: .registrar, Self.line(1) + Self.line(2))
            #expect(try Self.results(again.text).map(\.status) == ["inserted", "inserted", "done"])
        }
    }

    // MARK: Removing

    @Test func `a device is removed by whoever registers, and by nobody of another app`() async throws {
        try await WebScene.with { scene in
            _ = try await scene.api("PUT", Self.address, as: .registrar, body: Self.body(1))
            let other = try await scene.bearer(.registrar, topic: "com.example.other")
            #expect(try await scene.api("DELETE", Self.address, headers: other).status == 403)
            #expect(try await scene.api("DELETE", Self.address, as: .viewer).status == 403)
            let removed = try await scene.api("DELETE", Self.address, as: .registrar)
            #expect(removed.status == 200)
            let result: DeviceRemovalResult = try removed.result()
            #expect(result.deleted)
            let again = try await scene.api("DELETE", Self.address, as: .registrar)
            #expect(again.status == 404)
            #expect(again.problem?.detail.contains("no device of com.example.app") ?? false)
            #expect(try await scene.store.deviceCounts().isEmpty)
            let event = try #require(try await scene.store.events(run: nil, since: nil, limit: 1).first)
            #expect(event.kind == "device_removed")
            #expect(event.actor.name == "registrar (token)")
        }
    }

    @Test func `devices of another app that name the same text hide none, and are not removed in its place`()
        async throws
    {
        try await WebScene.with { scene in
            let others = (100..<125).map { number in
                Self.line(number, topic: "com.example.other")
                    .replacing("\"topic\"", with: "\"user_id\":\"phone-1\",\"topic\"")
            }
            _ = try await scene.lines("/devices", as: .registrar, others.joined() + Self.line(1))
            let own = try await scene.bearer(.viewer, topic: PipelineScene.topic)
            let found = try await scene.api("GET", "/devices?find=phone-1", headers: own)
            #expect(try found.result(ListPage<DeviceResult>.self).items.map(\.topic) == [PipelineScene.topic])
            #expect(try await scene.api("DELETE", Self.address, as: .registrar).status == 200)
            #expect(try await scene.store.deviceCounts().map(\.topic) == ["com.example.other"])
        }
    }

    @Test func `all devices of a user are removed, of the topics that the token is valid for`() async throws {
        try await WebScene.with { scene in
            let lines = (1...45).map { number in
                Self.line(number, topic: number > 42 ? "com.example.other" : PipelineScene.topic)
                    .replacing("\"topic\"", with: "\"user_id\":\"a/1\",\"topic\"")
            }
            // An installation with the same text is no device of the user.
            let alike = Self.line(50).replacing("phone-50", with: "a/1")
            _ = try await scene.lines("/devices", as: .registrar, lines.joined() + alike)
            let own = try await scene.bearer(.registrar, topic: PipelineScene.topic)
            #expect(try await scene.api("DELETE", "/users/a%2F1/devices", as: .viewer).status == 403)
            let removed = try await scene.api("DELETE", "/users/a%2F1/devices", headers: own)
            #expect(try removed.result(ListPage<DeviceRemovalResult>.self).items.count == 42)
            #expect(try await scene.api("DELETE", "/users/a%2F1/devices", headers: own).status == 404)
            #expect(try await scene.store.deviceCounts().map(\.count) == [1, 3])
        }
    }

    // MARK: Looking

    @Test func `devices are counted, those of another app for nobody else`() async throws {
        try await WebScene.with { scene in
            let lines = Self.line(1) + Self.line(2) + Self.line(3, topic: "com.example.other")
            _ = try await scene.lines("/devices", as: .registrar, lines)
            let all: DeviceCountsResult = try await scene.api("GET", "/devices/counts", as: .viewer).result()
            #expect(all.counts.map(\.count) == [2, 1])
            let own: DeviceCountsResult = try await scene.api(
                "GET", "/devices/counts", headers: scene.bearer(.viewer, topic: "com.example.other")
            ).result()
            #expect(own.counts.map(\.topic) == ["com.example.other"])
        }
    }

    @Test func `devices are found and explained, with their names as they are`() async throws {
        try await WebScene.with { scene in
            let name = "<script>alert(1)</script>"
            let body = Self.body(1, ", \"model\": \"\(name)\", \"user_id\": \"u,1\"")
            _ = try await scene.api("PUT", Self.address, as: .registrar, body: body)
            for text in ["phone-1", "u,1", "00000001"] {
                let encoded = text.replacing(",", with: "%2C")
                let answer = try await scene.api("GET", "/devices?find=\(encoded)", as: .viewer)
                let page: ListPage<DeviceResult> = try answer.result()
                #expect(page.items.map(\.model) == [name], "\(text)")
            }
            let device = try #require(try await scene.store.devices(matching: "phone-1").first).id
            let page = try await scene.api("GET", "/devices/\(device)/explanation", as: .viewer)
            #expect(page.status == 200)
            let explanation: ExplanationResult = try page.result()
            #expect(explanation.now.first?.hasPrefix("active") ?? false)
            #expect(try await scene.api("GET", "/devices/\(device + 1)/explanation", as: .viewer).status == 404)
            #expect(try await scene.api("GET", "/devices?find=nobody", as: .viewer).status == 404)
            #expect(try await scene.api("GET", "/devices", as: .viewer).status == 422)
            let table = try await scene.api("GET", "/devices?find=phone-1&format=csv", as: .viewer)
            #expect(table.header("content-type") == "text/csv; charset=utf-8")
            #expect(table.text.hasPrefix("device,installation_id,user_id,topic,"))
            #expect(table.text.contains("\"u,1\""))
            let accepted = try await scene.api(
                "GET", "/devices?find=phone-1", as: .viewer, headers: ["Accept": "text/csv"])
            #expect(accepted.text == table.text)
        }
    }

    private static func results(_ text: String) throws -> [RegistrationLineResult] {
        try text.split(separator: "\n").map { try ResultJSON.value(RegistrationLineResult.self, from: String($0)) }
    }
}
