import APNsSimulator
import Foundation
import Testing

extension SimulatorTests {
    @Suite struct Refusals {
        /// A request that is wrong in one way, and the reason that must come.
        struct Row: CustomTestStringConvertible, Sendable {
            let testDescription: String
            let status: Int
            let reason: String
            let change: @Sendable (inout TestRequest, Fixture) throws -> Void

            init(
                _ what: String, _ status: Int, _ reason: String,
                _ change: @escaping @Sendable (inout TestRequest, Fixture) throws -> Void
            ) {
                testDescription = "\(reason): \(what)"
                self.status = status
                self.reason = reason
                self.change = change
            }
        }

        @Test(arguments: requestRows + credentialRows + headerRows + topicRows + tokenRows + payloadRows)
        func `a wrong request gets its reason, and a right one is then accepted`(row: Row) throws {
            let fixture = try Fixture { options, key in try Self.prepare(&options, key) }
            var request = try fixture.push()
            try row.change(&request, fixture)
            let client = try fixture.client()
            let answer = try client.answer(to: request)
            #expect(answer.status == row.status)
            #expect(answer.reason == row.reason)
            #expect(answer.headers["content-type"] == "application/json")
            #expect(answer.headers["apns-id"]?.count == 36)
            #expect(client.streamLimits == [1])
            #expect(fixture.simulator.counts().rejected == [row.reason: 1])
            #expect(fixture.simulator.log().map(\.reason) == [row.reason])
            // Another connection: this one may be bound to a token by now.
            #expect(try fixture.client().answer(to: fixture.push()).status == 200)
        }

        private static func prepare(_ options: inout SimulatorOptions, _ key: TestKey) throws {
            options.keys.append(
                SimulatorKey(
                    keyID: "SANDBOXKEY", teamID: TestKey.teamID, pem: key.pem, environments: [.sandbox]))
            options.keys.append(
                SimulatorKey(
                    keyID: "OTHERTOPIC", teamID: TestKey.teamID, pem: key.pem, topics: ["com.example.other"]))
            options.topics.insert("com.example.other")
            options.registry.setGone(token: Fixture.token(9), environment: .production, since: 1_700_000_000_123)
            options.registry.register(
                token: Fixture.token(30), environment: .production, topic: "com.example.wendercast.voip")
        }

        static let requestRows = [
            Row("GET", 405, "MethodNotAllowed") { request, _ in
                request[":method"] = "GET"
                request.body = nil
            },
            Row("another path", 404, "BadPath") { request, _ in request[":path"] = "/3/devices/ab" },
            Row("an older interface", 404, "BadPath") { request, _ in request[":path"] = "/2/device/ab" },
            Row("no token in the path", 400, "MissingDeviceToken") { request, _ in request[":path"] = "/3/device/" },
            Row("a header twice", 400, "DuplicateHeaders") { request, _ in
                request.fields.append(("apns-topic", "com.example.wendercast"))
            },
        ]

        static let headerRows = [
            Row("upper case", 400, "BadMessageId") { request, _ in
                request["apns-id"] = "EC1BF194-B3B2-424A-89AA-5BE6B7E3E5F4"
            },
            Row("no UUID", 400, "BadMessageId") { request, _ in request["apns-id"] = "42" },
            Row("braces", 400, "BadMessageId") { request, _ in
                request["apns-id"] = "{c1bf194-b3b2-424a-89aa-5be6b7e3e5f}"
            },
            Row("a duration with unit", 400, "BadExpirationDate") { request, _ in request["apns-expiration"] = "1h" },
            Row("negative", 400, "BadExpirationDate") { request, _ in request["apns-expiration"] = "-1" },
            Row("empty", 400, "BadExpirationDate") { request, _ in request["apns-expiration"] = "" },
            Row("a priority that is none", 400, "BadPriority") { request, _ in request["apns-priority"] = "7" },
            Row("a push type that is none", 400, "InvalidPushType") { request, _ in request["apns-push-type"] = "Alert"
            },
            Row("65 bytes in 33 characters", 400, "BadCollapseId") { request, _ in
                request["apns-collapse-id"] = String(repeating: "é", count: 32) + "x"
            },
            Row("background at once", 400, "BadPriority") { request, _ in
                request["apns-push-type"] = "background"
                request["apns-priority"] = "10"
                request.body = Array(#"{"aps":{"content-available":1}}"#.utf8)
            },
            Row("background without priority", 400, "BadPriority") { request, _ in
                request["apns-push-type"] = "background"
                request.body = Array(#"{"aps":{"content-available":1}}"#.utf8)
            },
        ]

        static let topicRows = [
            Row("none", 400, "MissingTopic") { request, _ in request["apns-topic"] = nil },
            Row("unknown", 400, "BadTopic") { request, _ in request["apns-topic"] = "com.example.nobody" },
            Row("doubled suffix", 400, "BadTopic") { request, _ in
                request["apns-topic"] = "com.example.wendercast.voip.voip"
            },
            Row("without its suffix", 400, "TopicDisallowed") { request, _ in request["apns-push-type"] = "voip" },
            Row("suffix of another type", 400, "TopicDisallowed") { request, _ in
                request["apns-topic"] = "com.example.wendercast.voip"
            },
            Row("not one of the key's", 400, "TopicDisallowed") { request, fixture in
                let token = try fixture.key.token(issuedAt: Fixture.seconds(), keyID: "OTHERTOPIC")
                request["authorization"] = "bearer \(token)"
            },
        ]

        static let tokenRows = [
            Row("not registered", 400, "BadDeviceToken") { request, _ in
                request[":path"] = "/3/device/\(Fixture.hex(200))"
            },
            Row("of the sandbox", 400, "BadDeviceToken") { request, _ in
                request[":path"] = "/3/device/\(Fixture.hex(11))"
            },
            Row("an odd number of digits", 400, "BadDeviceToken") { request, _ in
                request[":path"] = "/3/device/\(Fixture.hex(1).dropLast())"
            },
            Row("no hex", 400, "BadDeviceToken") { request, _ in
                request[":path"] = "/3/device/\(Fixture.hex(1).dropLast())g"
            },
            Row("31 bytes", 400, "BadDeviceToken") { request, _ in
                request[":path"] = "/3/device/\(Fixture.hex(1).dropLast(2))"
            },
            Row("101 bytes", 400, "BadDeviceToken") { request, _ in
                request[":path"] = "/3/device/\(String(repeating: "ab", count: 101))"
            },
            Row("of another kind", 400, "DeviceTokenNotForTopic") { request, _ in
                request[":path"] = "/3/device/\(Fixture.hex(30))"
            },
            Row("gone", 410, "Unregistered") { request, _ in request[":path"] = "/3/device/\(Fixture.hex(9))" },
        ]

        static let payloadRows = [
            Row("no body", 400, "PayloadEmpty") { request, _ in request.body = nil },
            Row("an empty body", 400, "PayloadEmpty") { request, _ in request.body = [] },
            Row("4097 bytes", 413, "PayloadTooLarge") { request, _ in
                request.body = [UInt8](repeating: UInt8(ascii: "x"), count: 4097)
            },
            Row("far too many bytes", 413, "PayloadTooLarge") { request, _ in
                request.body = [UInt8](repeating: UInt8(ascii: "x"), count: 300_000)
            },
            Row("a background push with a sound", 400, "InvalidPushType") { request, _ in
                request["apns-push-type"] = "background"
                request["apns-priority"] = "5"
                request.body = Array(#"{"aps":{"content-available":1,"sound":""}}"#.utf8)
            },
        ]
    }
}
