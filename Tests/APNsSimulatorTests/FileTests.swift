import APNsSimulator
import Foundation
import Testing

extension SimulatorTests {
    @Suite struct Files {
        private func write(_ text: String, in fixture: Fixture) throws -> String {
            let path = fixture.directory + "/lines.jsonl"
            try Data(text.utf8).write(to: URL(filePath: path))
            return path
        }

        @Test func `the log file has a line for each request, as the log in memory`() throws {
            let fixture = try Fixture { options, _ in
                options.logPath = options.directory + "/log.jsonl"
                options.logsPayloads = true
            }
            let client = try fixture.client()
            let id = "ec1bf194-b3b2-424a-89aa-5be6b7e3e5f4"
            var request = try fixture.push().with("apns-id", id).with("apns-collapse-id", "a \"key\"\n")
            request["apns-collapse-id"] = "a \"key\" \\"
            request["apns-expiration"] = "1800000000"
            request["apns-priority"] = "5"
            #expect(try client.answer(to: request).status == 200)
            #expect(try client.answer(to: fixture.push(200)).status == 400)
            let log = fixture.simulator.log()
            fixture.simulator.stop()
            let text = try String(contentsOfFile: fixture.directory + "/log.jsonl", encoding: .utf8)
            let lines = try text.split(separator: "\n").map {
                try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
            try #require(lines.count == 2 && log.count == 2)
            #expect(lines[0]["token"] as? String == Fixture.hex(1))
            #expect(lines[0]["apns_id"] as? String == id)
            #expect(lines[0]["collapse_id"] as? String == #"a "key" \"#)
            #expect(lines[0]["payload"] as? String == String(decoding: request.body ?? [], as: UTF8.self))
            #expect(lines[1]["reason"] as? String == "BadDeviceToken")
            #expect(lines.map { $0["had_acceptance"] as? Bool } == [false, true])
            let first = log[0]
            #expect(first.sequence == 1 && first.stream == 1 && first.connection == 1 && first.openStreams == 1)
            #expect(first.token == Fixture.hex(1) && first.apnsID == id && first.topic == Fixture.topic)
            #expect(first.pushType == "alert" && first.priority == "5" && first.expiration == "1800000000")
            #expect(first.payloadBytes == request.body?.count && first.status == 200 && first.reason == nil)
            #expect(first.hasAuthorization && !first.hadAcceptance && log[1].hadAcceptance)
            #expect(abs(first.timeMs / 1000 - Int64(Fixture.seconds())) < 120)
        }

        @Test func `a registry file is read whole`() throws {
            let fixture = try Fixture()
            let lines = (1...5000).map { number in
                let token = String(format: "%064x", number)
                let gone = number.isMultiple(of: 2) ? #","gone_since":1700000000000"# : ""
                return #"{"token":"\#(token)","environment":"sandbox","topic":"com.example.app"\#(gone)}"#
            }
            let path = try write(lines.joined(separator: "\n"), in: fixture)
            let registry = try SimulatorRegistry.load(path)
            #expect(registry.count == 5000)
            fixture.simulator.changeRegistry { $0 = registry }
            let client = try fixture.client(.sandbox)
            for number in [1, 2, 4999, 5000] {
                var request = TestRequest(
                    token: String(format: "%064x", number), authorization: try fixture.authorization())
                request["apns-topic"] = "com.example.app"
                #expect(try client.answer(to: request).status == (number.isMultiple(of: 2) ? 410 : 200))
            }
        }

        @Test(arguments: [
            "{", #"{"token":"zz","environment":"sandbox","topic":"t"}"#,
            #"{"token":"abab","environment":"sandbox","topic":"t"}"#,
            #"{"token":"\#(String(repeating: "ab", count: 32))","environment":"staging","topic":"t"}"#,
        ])
        func `a bad line of a registry names its place`(line: String) throws {
            let fixture = try Fixture()
            let path = try write("\n\n\(line)\n", in: fixture)
            #expect { try SimulatorRegistry.load(path) } throws: { error in
                "\(error)".hasPrefix("\(path):3: ")
            }
        }

        @Test func `a time that is no number is refused with what is meant`() throws {
            let fixture = try Fixture()
            let line = #"{"token":"\#(Fixture.hex(1))","environment":"sandbox","topic":"t","gone_since":"yesterday"}"#
            let path = try write(line, in: fixture)
            #expect { try SimulatorRegistry.load(path) } throws: { error in
                "\(error)".contains("gone_since must be in milliseconds since 1970")
            }
        }

        @Test func `what cannot be opened is named`() throws {
            #expect { try SimulatorRegistry.load("/nowhere/tokens") } throws: { "\($0)".contains("/nowhere/tokens") }
            #expect { try Simulator(SimulatorOptions(directory: "/nowhere")) } throws: { "\($0)".contains("/nowhere") }
            let fixture = try Fixture()
            var options = SimulatorOptions(directory: fixture.directory)
            options.productionPort = fixture.simulator.port(for: .production)
            let second = try Simulator(options)
            #expect { try second.start() } throws: { "\($0)".contains("cannot listen on 127.0.0.1") }
            options.productionPort = nil
            options.sandboxPort = nil
            #expect(throws: SimulatorError.noEnvironment) { try Simulator(options) }
            options.productionPort = 0
            options.keys = [SimulatorKey(keyID: "ABC", teamID: "DEF", pem: "nonsense")]
            #expect { try Simulator(options) } throws: { "\($0)".contains("ABC") }
        }
    }
}
