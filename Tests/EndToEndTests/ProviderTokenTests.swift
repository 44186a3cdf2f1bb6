import APNs
import APNsSimulator
import Foundation
import TestSupport
import Testing

/// What APNs sees of the provider tokens of a whole installation.
@Suite(.ownThread, .timeLimit(.minutes(5))) struct `A provider token` {
    private static let topics = (0..<10).map { "com.example.app\($0)" }

    /// Ten apps with one key, each with a campaign and a few devices.
    private func place() throws -> Installation {
        let place = try Installation(devices: 1) { options in
            options.topics = Set(Self.topics)
            options.unknownTokens = .accept
        }
        let apps = Self.topics.map { topic in
            """
              - topic: \(topic)
                team_id: \(SampleInstallation.teamID)
                key_id: \(SampleInstallation.keyID)
                key_path: key.p8
                connections: 2
                endpoints:
                  production: 127.0.0.1:\(place.simulator.port(for: .production))
                  sandbox: 127.0.0.1:\(place.simulator.port(for: .sandbox))
                  trust: \(place.simulator.authorityPath)
            """
        }
        try place.folder.write(
            "store: fanfare.sqlite\nhttp: {listen: \"127.0.0.1:0\"}\napps:\n\(apps.joined(separator: "\n"))\n",
            to: "fanfare.yaml")
        try place.folder.write(
            "template: note\nalert: {en: {body: Hi}}\ndefault_locale: en\n", to: "templates/note.yaml")
        var lines = ["token,environment,topic"]
        for (number, topic) in Self.topics.enumerated() {
            try place.folder.write(
                "campaign: c\(number)\ntopic: \(topic)\npush_type: alert\ntemplate: note\npace: {rate: 20/s}\n"
                    + "audience: everyone\n",
                to: "campaigns/c\(number).yaml")
            for device in 0..<30 {
                let environment = device % 3 == 0 ? "sandbox" : "production"
                let digits = String(100 + number * 30 + device)
                lines.append("\(String(repeating: "a", count: 64 - digits.count))\(digits),\(environment),\(topic)")
            }
        }
        try place.folder.write(lines.joined(separator: "\n") + "\n", to: "apps.csv")
        let imported = try place.fanfare("devices", "import", "apps.csv")
        try #require(imported.status == 0, "\(imported.errors)")
        return place
    }

    @Test func `is one for ten topics, two environments, a reload, and runs beside the daemon`() async throws {
        try await OwnThread.run {
            let place = try place()
            let own = try RunningProgram(["run", "c0", "--occurrence", "a", "--yes"], in: place.folder)
            try own.wait { place.simulator.counts().accepted > 0 }
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            func handOver(_ campaigns: ClosedRange<Int>) throws {
                for number in campaigns {
                    let run = try place.fanfare("run", "c\(number)", "--occurrence", "a", "--no-wait", "--yes")
                    try #require(run.status == 0, "\(run.errors)")
                }
            }
            func ended() -> Int { daemon.errors.components(separatedBy: "run ended").count - 1 }
            try handOver(1...4)
            daemon.signal(SIGHUP)
            try daemon.wait { daemon.errors.components(separatedBy: "files read").count > 2 }
            try handOver(5...9)
            let test = try place.fanfare("test-send", "c3", "--device", "a0000190")
            #expect(test.status == 66, "\(test.errors)")
            try daemon.wait { ended() >= 9 }
            #expect(try own.finish().status == 0)
            // A process of its own, after and beside all of them.
            let last = try place.fanfare("test-send", "c9", "--device", "aaaaa371")
            #expect(last.status == 0, "\(last.errors)")
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
            let log = place.simulator.log()
            #expect(log.count == 301 && log.allSatisfy { $0.status == 200 })
            #expect(Set(log.compactMap(\.topic)).count == 10)
            #expect(Set(log.map(\.connection)).count >= 20)
            #expect(log.authorizationHashes.count == 1)
        }
    }

    @Test func `of a key that was replaced in its file is a new one after a reload`() async throws {
        try await OwnThread.run {
            let pem = try SigningKey.generatedPEM()
            let place = try Installation(devices: 4) { options in
                options.keys.append(
                    SimulatorKey(keyID: "OTHERKEY01", teamID: SampleInstallation.teamID, pem: pem))
            }
            try place.importDevices()
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            func run(_ occurrence: String) throws {
                let result = try place.run("new-podcast", "--occurrence", occurrence)
                try #require(result.status == 0, "\(result.errors)")
            }
            try run("a")
            try run("b")
            #expect(place.simulator.log().authorizationHashes.count == 1)
            // Signed anew by the same key it would be refused within 20 minutes on this connection.
            let text = try String(contentsOfFile: place.folder.file("key.p8"), encoding: .utf8)
            try place.folder.write(text + "\n", to: "key.p8")
            daemon.signal(SIGHUP)
            try daemon.wait { daemon.errors.components(separatedBy: "files read").count > 2 }
            try run("c")
            #expect(place.simulator.log().authorizationHashes.count == 1)
            try place.folder.write(pem, to: "key.p8")
            try place.configure(keyID: "OTHERKEY01")
            daemon.signal(SIGHUP)
            try daemon.wait { daemon.errors.components(separatedBy: "files read").count > 3 }
            try run("d")
            #expect(place.simulator.log().authorizationHashes.count == 2)
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
        }
    }
}

/// A key for each environment.
@Suite(.ownThread, .timeLimit(.minutes(5))) struct `Keys of one environment` {
    private static let sandboxKey = "SANDBOX001"
    private let pem: String
    private let place: Installation

    init() throws {
        let pem = try SigningKey.generatedPEM()
        self.pem = pem
        place = try Installation(devices: 20) { options in
            options.keys[0].environments = [.production]
            options.keys.append(
                SimulatorKey(
                    keyID: Self.sandboxKey, teamID: SampleInstallation.teamID, pem: pem, environments: [.sandbox]))
            options.unknownTokens = .accept
        }
        try place.folder.write(pem, to: "sandbox.p8")
        let sandbox = (0..<5).map {
            "\(String(repeating: "c", count: 63))\($0),sandbox,\(Installation.topic),test-\($0)\n"
        }
        try place.folder.write("token,environment,topic,installation_id\n" + sandbox.joined(), to: "sandbox.csv")
        try place.folder.write(
            "campaign: all\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: note\naudience: everyone\n",
            to: "campaigns/all.yaml")
        try place.folder.write(
            "template: note\nalert: {en: {body: Hi}}\ndefault_locale: en\n", to: "templates/note.yaml")
        for file in ["devices.csv", "sandbox.csv"] {
            let imported = try place.fanfare("devices", "import", file)
            try #require(imported.status == 0, "\(imported.errors)")
        }
    }

    private func configure(_ keys: String) throws {
        try place.folder.write(
            """
            store: fanfare.sqlite
            http: {listen: "127.0.0.1:0"}
            apps:
              - topic: \(Installation.topic)
                team_id: \(SampleInstallation.teamID)
                keys: {\(keys)}
                connections: 1
                endpoints:
                  production: 127.0.0.1:\(place.simulator.port(for: .production))
                  sandbox: 127.0.0.1:\(place.simulator.port(for: .sandbox))
                  trust: \(place.simulator.authorityPath)

            """, to: "fanfare.yaml")
    }

    private static let production = "production: {key_id: \(SampleInstallation.keyID), key_path: key.p8}"
    private static let sandbox = "sandbox: {key_id: \(sandboxKey), key_path: sandbox.p8}"

    @Test func `send to both`() throws {
        try configure("\(Self.production), \(Self.sandbox)")
        let run = try place.run("all")
        #expect(run.status == 0, "\(run.errors)")
        #expect(place.simulator.counts().accepted == 25)
        #expect(place.simulator.log().authorizationHashes.count == 2)
    }

    @Test(arguments: ["wrong", "swapped"]) func `one that is refused stops its environment alone`(
        mistake: String
    ) throws {
        // The sandbox's key id with a key that Apple does not know for it; or the key of production.
        let wrong =
            mistake == "wrong"
            ? "sandbox: {key_id: \(Self.sandboxKey), key_path: key.p8}"
            : "sandbox: {key_id: \(SampleInstallation.keyID), key_path: key.p8}"
        try configure("\(Self.production), \(wrong)")
        let run = try place.run("all", "--occurrence", "a")
        #expect(run.status == 77, "\(run.errors)")
        let id = mistake == "wrong" ? Self.sandboxKey : SampleInstallation.keyID
        let reason = mistake == "wrong" ? "InvalidProviderToken" : "BadEnvironmentKeyIdInToken"
        for words in [
            "sandbox, key \(id) of team \(SampleInstallation.teamID): \(reason)",
            "5 deliveries there wait: a daemon retries them automatically",
        ] {
            #expect(run.errors.contains(words), "\(run.errors)")
        }
        #expect(run.errors.contains("credential refused, environment stopped"))
        #expect(place.simulator.counts().accepted == 20)
        let status = try place.fanfare("status", "all")
        #expect(status.output.contains("paused") && status.output.contains(reason), "\(status.output)")
        try configure("\(Self.production), \(Self.sandbox)")
        let resumed = try place.fanfare("resume", "all")
        #expect(resumed.status == 0, "\(resumed.errors)")
        #expect(place.simulator.counts().accepted == 25)
        #expect(try place.fanfare("report", "all", "--check").output.contains("The counts balance."))
    }

    @Test func `where one is missing, plan and run say who is not sent to`() throws {
        try configure(Self.production)
        let plan = try place.fanfare("plan", "all")
        #expect(plan.output.contains("5 sandbox devices: the app has no key for sandbox"), "\(plan.output)")
        let json = try place.fanfare("plan", "all", "--json")
        #expect(json.output.contains("\"without_key\" : {\n    \"sandbox\" : 5\n  }"), "\(json.output)")
        let run = try place.run("all", "--occurrence", "a")
        #expect(run.status == 77, "\(run.errors)")
        #expect(run.errors.contains("warning: 5 sandbox devices: the app has no key for sandbox"), "\(run.errors)")
        #expect(run.errors.contains("sandbox: the app has no key for it; add keys.sandbox"), "\(run.errors)")
        #expect(place.simulator.counts().accepted == 20)
        let test = try place.fanfare("test-send", "all", "--device", "test-1")
        #expect(test.status == 77 && test.errors.contains("keys.sandbox"), "\(test.errors)")
        try configure("\(Self.production), \(Self.sandbox)")
        #expect(try place.fanfare("plan", "all").output.contains("no key") == false)
        #expect(try place.fanfare("resume", "all/a").status == 0)
        #expect(place.simulator.counts().accepted == 25)
    }
}
