import Campaigns
import TestSupport
import Testing

struct ConfigurationSourceTests {
    @Test func `refuses a file of the environment that does not exist, and reads no other one`() throws {
        let source = ConfigurationSource(named: nil, environment: ["FANFARE_CONFIG": "/nowhere/fanfare.yaml"])
        #expect(source.path == "/nowhere/fanfare.yaml")
        let failure = try #require(throws: Failure.self) { try source.read() }
        #expect(failure.kind == .configuration)
        #expect(failure.messages.joined().contains("/nowhere/fanfare.yaml"))
    }

    @Test func `prefers the file of the command line to the one of the environment`() {
        let source = ConfigurationSource(named: "/a/fanfare.yaml", environment: ["FANFARE_CONFIG": "/b/fanfare.yaml"])
        #expect(source.path == "/a/fanfare.yaml")
    }
}
