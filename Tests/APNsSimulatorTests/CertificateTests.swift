import APNsSimulator
import Foundation
import Testing

extension SimulatorTests {
    @Suite struct Certificates {
        private func certificate(
            _ fixture: Fixture, _ environment: SimulatorEnvironment = .production
        ) throws -> (path: String, keyPath: String) {
            let issued = try fixture.simulator.issueClientCertificate(
                topic: Fixture.topic, environment: environment, directory: fixture.directory)
            return (issued.certificatePath, issued.keyPath)
        }

        @Test func `a certificate needs no token and has all streams at once`() throws {
            let fixture = try Fixture()
            let client = try fixture.client(certificate: certificate(fixture))
            let request = try fixture.push().with("authorization", nil)
            #expect(try client.answer(to: request).status == 200)
            #expect(client.streamLimits == [1000])
            // It wins over a token, and has a topic by default.
            #expect(try client.answer(to: request.with("authorization", "bearer nonsense")).status == 200)
            #expect(try client.answer(to: request.with("apns-topic", nil)).status == 200)
            #expect(fixture.simulator.log().map(\.hasAuthorization) == [false, true, false])
        }

        @Test(
            arguments: [
                ("com.example.wendercast.voip", "voip", 200, nil),
                ("com.example.wendercast.complication", "complication", 200, nil),
                ("com.example.wendercast.location-query", "location", 400, "TopicDisallowed"),
                ("com.example.other", "alert", 400, "BadTopic"),
            ] as [(String, String, Int, String?)])
        func `a certificate is good for its own topics`(topic: String, type: String, status: Int, reason: String?)
            throws
        {
            let fixture = try Fixture { options, _ in
                options.topics.insert("com.example.other")
                options.registry.register(token: Fixture.token(50), environment: .production, topic: topic)
            }
            let request = try fixture.push(50).with("apns-topic", topic).with("apns-push-type", type)
            let answer = try fixture.client(certificate: certificate(fixture)).answer(to: request)
            #expect(answer.status == status)
            #expect(answer.reason == reason)
        }

        @Test func `a certificate of the other environment is turned away with GOAWAY`() throws {
            let fixture = try Fixture()
            let client = try fixture.client(.production, certificate: certificate(fixture, .sandbox))
            try expectTurnedAway(client, fixture)
            #expect(
                try fixture.client(.sandbox, certificate: certificate(fixture, .sandbox))
                    .answer(to: fixture.push(11)).status == 200)
        }

        @Test func `a certificate of an unknown authority is turned away with GOAWAY`() throws {
            let fixture = try Fixture()
            let other = try Fixture()
            try expectTurnedAway(try fixture.client(certificate: certificate(other)), fixture)
        }

        @Test func `another authority can be trusted by its file`() throws {
            let other = try Fixture()
            let fixture = try Fixture { options, _ in
                options.clientCertificates = .authority(path: other.simulator.authorityPath)
            }
            let client = try fixture.client(certificate: certificate(other))
            #expect(try client.answer(to: fixture.push().with("authorization", nil)).status == 200)
        }

        @Test func `the private key is for its owner only`() throws {
            let fixture = try Fixture()
            let path = try certificate(fixture).keyPath
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }

        private func expectTurnedAway(_ client: TestClient, _ fixture: Fixture) throws {
            client.submit(try fixture.push())
            try client.write()
            try client.waitForEnd()
            #expect(client.goAways == [.init(lastStream: 0, debugData: #"{"reason":"BadCertificateEnvironment"}"#)])
            #expect(fixture.simulator.log().isEmpty)
            #expect(fixture.simulator.counts().accepted == 0)
        }
    }
}
