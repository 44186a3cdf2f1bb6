import Foundation
import TestSupport
import Testing

/// The README's first command, looked at from both sides.
@Suite(.timeLimit(.minutes(10))) struct `The demo` {
    /// One request as the simulator logged it.
    struct Entry: Decodable {
        var time: Int
        var connection: Int
        var environment: String
        var token: String
        var apnsID: String
        var topic: String
        var pushType: String
        var priority: String
        var expiration: String
        var collapseID: String?
        var payloadBytes: Int
        var status: Int
        var reason: String?
        var openStreams: Int
        var hadAcceptance: Bool

        enum CodingKeys: String, CodingKey {
            case connection, environment, token, topic, priority, expiration, status, reason
            case time = "time_ms"
            case apnsID = "apns_id"
            case pushType = "push_type"
            case collapseID = "collapse_id"
            case payloadBytes = "payload_bytes"
            case openStreams = "open_streams"
            case hadAcceptance = "had_acceptance"
        }
    }

    private static let devices = 20_000

    private static func played() throws -> (output: String, log: [Entry]) {
        let folder = try TemporaryDirectory()
        let result = try Program.run(["demo", "--dir", "demo", "--devices", "\(devices)"], in: folder)
        try #require(result.status == 0, "\(result.output)\n\(result.errors)")
        let decoder = JSONDecoder()
        let log = try folder.read("demo/simulator.jsonl").split(separator: "\n").map {
            try decoder.decode(Entry.self, from: Data($0.utf8))
        }
        return (result.output, log)
    }

    @Test func `ends with a report that adds up, and APNs' side agrees`() throws {
        let (output, log) = try Self.played()
        #expect(output.components(separatedBy: "The sums close.").count == 3)
        #expect(output.contains("silent_budget"))
        #expect(!output.contains("DO NOT CLOSE"))
        let alerts = log.filter { $0.pushType == "alert" }
        let silent = log.filter { $0.pushType == "background" }
        #expect(alerts.count + silent.count == log.count)
        try Self.checkAlerts(alerts)
        try Self.checkSilent(silent)
        Self.checkConnections(alerts)
    }

    private static func checkAlerts(_ alerts: [Entry]) throws {
        let accepted = alerts.filter { $0.status == 200 }
        #expect(accepted.count > devices / 2)
        #expect(Set(accepted.map(\.token)).count == accepted.count, "a token was accepted twice")
        #expect(Set(alerts.map(\.apnsID)).count == alerts.count)
        #expect(alerts.allSatisfy { $0.topic == "com.example.wendercast" && $0.priority == "10" })
        #expect(Set(alerts.map(\.collapseID)).count == 1)
        #expect(Set(alerts.map(\.expiration)).count == 1)
        let planned = try #require(alerts.map(\.time).min()) / 1000
        let expiration = try #require(Int(alerts[0].expiration))
        #expect((planned..<planned + 5 * 3600).contains(expiration))
        #expect(Set(alerts.filter { $0.status != 200 }.map(\.reason)) == ["Unregistered", "BadDeviceToken"])
    }

    private static func checkSilent(_ silent: [Entry]) throws {
        #expect(silent.allSatisfy { $0.topic == "com.example.wendercast" && $0.priority == "5" })
        let perToken = Dictionary(grouping: silent, by: \.token)
        let perBudget = perToken.values.map { $0.count { $0.status == 200 } }.max()
        #expect(perBudget == 3, "the budget is three an hour; what was refused does not count")
        let acceptedThrice = perToken.values.filter { $0.count == 3 && $0.allSatisfy { $0.status == 200 } }
        #expect(acceptedThrice.count > devices / 5)
    }

    private static func checkConnections(_ alerts: [Entry]) {
        let connections = Dictionary(grouping: alerts, by: \.connection)
        #expect(Set(connections.values.map { Set($0.map(\.environment)).count }) == [1])
        let lanes = Dictionary(grouping: connections.values) { $0.first?.environment ?? "" }.mapValues(\.count)
        #expect(lanes["production"] == 2, "\(lanes)")
        // No more than the two leases that one lane may hold: the other one may come too late for any of it.
        #expect(alerts.count { $0.environment == "sandbox" } <= 2000 && [1, 2].contains(lanes["sandbox"]), "\(lanes)")
        for requests in connections.values {
            #expect(requests.filter { !$0.hadAcceptance }.allSatisfy { $0.openStreams <= 1 })
        }
    }
}
