import APNsSimulator
import Foundation
import Testing

/// The tests run serially, because they count threads, and each has a server of its own.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct SimulatorTests {}

extension SimulatorTests {
    @Suite struct Acceptance {
        @Test func `an accepted push is a 200 that ends with its headers and echoes the id`() throws {
            let fixture = try Fixture()
            let id = "ec1bf194-b3b2-424a-89aa-5be6b7e3e5f4"
            let answer = try fixture.client().answer(to: fixture.push().with("apns-id", id))
            #expect(answer.status == 200)
            #expect(answer.headers == [":status": "200", "apns-id": id])
            #expect(answer.body.isEmpty)
            #expect(answer.endedWithHeaders)
        }

        @Test func `a request without an id gets a new id each time`() throws {
            let fixture = try Fixture()
            let client = try fixture.client()
            let ids = try (0..<20).map { _ in try client.answer(to: fixture.push()).headers["apns-id"] ?? "" }
            #expect(Set(ids).count == 20)
            for id in ids {
                #expect(id.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil)
            }
        }

        @Test func `a 410 response has its timestamp in milliseconds`() throws {
            let fixture = try Fixture { options, _ in
                options.registry.setGone(token: Fixture.token(2), environment: .production, since: 1_700_000_000_123)
            }
            let answer = try fixture.client().answer(to: fixture.push(2))
            #expect(answer.status == 410)
            #expect(answer.text == #"{"reason":"Unregistered","timestamp":1700000000123}"#)
        }

        @Test(arguments: [
            ("background", "", "5", #"{"aps":{"content-available":1},"alert":"beside aps is no alert"}"#),
            ("background", "", "1", "not even JSON, \"alert\""),
            ("alert", "", "10", "{}"), ("alert", "", "5", "{}"), ("alert", "", "1", "{}"),
            ("voip", ".voip", "10", String(repeating: "x", count: 5120)),
            ("alert", "", "10", String(repeating: "x", count: 4096)),
            ("location", ".location-query", "10", "{}"), ("complication", ".complication", "10", "{}"),
            ("fileprovider", ".pushkit.fileprovider", "10", "{}"), ("mdm", "", "10", "{}"),
            ("liveactivity", ".push-type.liveactivity", "10", "{}"), ("pushtotalk", ".voip-ptt", "10", "{}"),
            ("widgets", ".push-type.widgets", "10", "{}"), ("controls", ".push-type.controls", "10", "{}"),
        ])
        func `every push type is accepted with its suffix`(
            type: String, suffix: String, priority: String, body: String
        ) throws {
            let topic = Fixture.topic + suffix
            let fixture = try Fixture { options, _ in
                options.registry.register(token: Fixture.token(40), environment: .production, topic: topic)
            }
            var request = try fixture.push(40).with("apns-push-type", type).with("apns-topic", topic)
            request["apns-priority"] = priority
            request.body = Array(body.utf8)
            let answer = try fixture.client().answer(to: request)
            #expect(answer.status == 200, "\(answer.text)")
        }

        @Test func `tokens of 100 bytes and in upper case are accepted`() throws {
            let long = [UInt8](repeating: 0xcd, count: 100)
            let fixture = try Fixture { options, _ in
                options.registry.register(token: long, environment: .production, topic: Fixture.topic)
            }
            let client = try fixture.client()
            let path = "/3/device/" + String(repeating: "CD", count: 100)
            #expect(try client.answer(to: fixture.push().with(":path", path)).status == 200)
            #expect(fixture.simulator.log()[0].token == path.dropFirst(10).lowercased())
        }

        @Test func `unknown tokens can be accepted, and the topic is still checked`() throws {
            let fixture = try Fixture { options, _ in options.unknownTokens = .accept }
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push(99)).status == 200)
            #expect(try client.answer(to: fixture.push(99).with("apns-topic", "com.other")).reason == "BadTopic")
        }

        @Test func `both environments are served, each with its own tokens`() throws {
            let fixture = try Fixture()
            #expect(fixture.simulator.port(for: .production) != fixture.simulator.port(for: .sandbox))
            #expect(try fixture.client(.production).answer(to: fixture.push(1)).status == 200)
            #expect(try fixture.client(.sandbox).answer(to: fixture.push(11)).status == 200)
            #expect(try fixture.client(.sandbox).answer(to: fixture.push(1)).reason == "BadDeviceToken")
            #expect(fixture.simulator.log().map(\.environment) == [.production, .sandbox, .sandbox])
        }

        @Test func `the accept-all mode checks nothing`() throws {
            let fixture = try Fixture { options, _ in options.mode = .acceptAll }
            let client = try fixture.client()
            let answer = try client.answer(to: TestRequest(token: "x", authorization: nil).with(":path", "/"))
            #expect(answer.status == 200)
            #expect(client.streamLimits == [1000])
        }

        @Test func `the registry changes while the simulator runs`() throws {
            let fixture = try Fixture()
            let client = try fixture.client()
            let token = Fixture.token(1)
            #expect(try client.answer(to: fixture.push()).status == 200)
            fixture.simulator.changeRegistry { $0.setGone(token: token, environment: .production, since: 5) }
            #expect(try client.answer(to: fixture.push()).status == 410)
            fixture.simulator.changeRegistry { $0.setGone(token: token, environment: .production, since: nil) }
            #expect(try client.answer(to: fixture.push()).status == 200)
            fixture.simulator.changeRegistry { $0.remove(token: token, environment: .production) }
            #expect(try client.answer(to: fixture.push()).reason == "BadDeviceToken")
            fixture.simulator.changeRegistry {
                $0.register(token: token, environment: .production, topic: "com.example.new")
            }
            #expect(try client.answer(to: fixture.push()).reason == "DeviceTokenNotForTopic")
            #expect(try client.answer(to: fixture.push().with("apns-topic", "com.example.new")).status == 200)
        }

        @Test func `a header list over the announced limit is refused`() throws {
            let fixture = try Fixture()
            var request = try fixture.push()
            for number in 0..<10 { request.fields.append(("x-filler-\(number)", String(repeating: "x", count: 800))) }
            #expect(try fixture.client().answer(to: request).status == 431)
        }
    }
}
