import APNsSimulator
import Foundation
import Testing

extension SimulatorTests {
    /// What people see in the end.
    @Suite struct Screens {
        private let fixture: Fixture
        private let client: TestClient
        private let device = Fixture.hex(1)

        init() throws {
            fixture = try Fixture { options, _ in options.simulatesDevices = true }
            client = try fixture.client()
        }

        private func push(
            _ text: String, collapse: String? = nil, expiration: String? = nil, type: String = "alert"
        ) throws {
            var request = try fixture.push().with("apns-push-type", type).with("apns-collapse-id", collapse)
                .with("apns-expiration", expiration)
            if type == "background" { request["apns-priority"] = "5" }
            request.body = Array(text.utf8)
            let answer = try client.answer(to: request)
            try #require(answer.status == 200, "\(answer.text)")
        }

        private var shown: [String] { fixture.simulator.devices().shown(on: device).map(\.payload) }

        @Test func `the same collapse id replaces, another one stacks`() throws {
            try push("wrong", collapse: "news-1")
            try push("other")
            try push("other")
            #expect(shown == ["wrong", "other", "other"])
            try push("right", collapse: "news-1")
            #expect(shown == ["other", "other", "right"])
            #expect(fixture.simulator.devices().devicesByPayload == ["other": 1, "right": 1])
            #expect(fixture.simulator.devices().devicesWithSeveral == 1)
        }

        @Test func `one that is offline gets the newest of an app when it comes back, unless that has expired`() throws
        {
            let now = Int64(Fixture.seconds())
            for (expiration, later, expected) in [
                (nil, 86_400, ["right"]), ("\(now + 60)", 59, ["right"]), ("\(now + 60)", 61, []), ("0", 0, ["wrong"]),
            ] as [(String?, Int64, [String])] {
                fixture.simulator.changeDevices { $0 = SimulatedDevices() }
                fixture.simulator.changeDevices { $0.goOffline(device) }
                try push("wrong", collapse: "news-1")
                try push("right", collapse: "news-1", expiration: expiration)
                #expect(shown == [])
                fixture.simulator.changeDevices { $0.goOnline(device, nowMs: (now + later) * 1000) }
                #expect(shown == expected, "\(expiration ?? "none") after \(later) s")
            }
        }

        @Test func `an app that is asked takes away what it showed`() throws {
            try push("wrong", collapse: "news-1")
            try push("other", collapse: "news-2")
            try push(#"{"aps":{"content-available":1},"recall":"news-1"}"#, type: "background")
            #expect(shown == ["other"])
            try push(#"{"aps":{"content-available":1}}"#, type: "background")
            #expect(shown == ["other"])
        }

        @Test func `what was refused is on no screen`() throws {
            #expect(try client.answer(to: fixture.push(99)).status == 400)
            #expect(fixture.simulator.devices().shown(on: Fixture.hex(99)) == [])
        }
    }
}
