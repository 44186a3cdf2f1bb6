import APNs
import APNsSimulator
import Campaigns
import Foundation
import TestSupport
import Testing

@testable import fanfare

/// Commands of a user who cannot read the keys, beside a daemon that has copies of them.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Without the keys` {
    /// As for a user whom the folder of the keys is closed to.
    private static let unreadable = [
        "FANFARE_APPS_0_KEY_PATH": "/nowhere/key.p8", "FANFARE_WEBHOOKS_0_SECRET_PATH": "/nowhere/hook.secret",
    ]

    private func place() throws -> Installation {
        let place = try Installation(devices: 3)
        try place.folder.write("0123456789abcdef0123", to: "hook.secret")
        try place.configure(more: "webhooks:\n  - {url: \"http://127.0.0.1:9/\", secret_path: hook.secret}")
        try place.importDevices()
        return place
    }

    @Test func `run and test-send hand over to the daemon before they look for keys`() async throws {
        try await OwnThread.run {
            let place = try place()
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            let words = ["--yes"] + Installation.words
            let run = try Program.run(
                ["run", "new-podcast", "--occurrence", "a"] + words, in: place.folder,
                environment: Self.unreadable)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.errors.contains("is sent by the daemon"), "\(run.errors)")
            let device = place.tokens[0]
            let test = try Program.run(
                ["test-send", "new-podcast", "--device", device] + Installation.words, in: place.folder,
                environment: Self.unreadable)
            #expect(test.status == 0, "\(test.errors)")
            #expect(test.output.contains("accepted"), "\(test.output)")
            #expect(place.simulator.counts().accepted == 4)
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
        }
    }

    @Test func `run without a daemon says so before anything is on record`() async throws {
        try await OwnThread.run {
            let place = try place()
            let run = try Program.run(
                ["run", "new-podcast", "--occurrence", "a", "--yes"] + Installation.words, in: place.folder,
                environment: Self.unreadable)
            #expect(run.status == 78, "\(run.errors)")
            #expect(try place.fanfare("status").output.contains("new-podcast") == false)
        }
    }

    @Test(
        .enabled(
            if: !FileManager.default.fileExists(atPath: StateFolder.ofService), "this machine has the service's folder")
    )
    func `a command before the first start of the service is told to start it`() async throws {
        try await OwnThread.run {
            let place = try place()
            let result = try place.fanfare(
                "status", environment: ["FANFARE_STORE": "\(StateFolder.ofService)/fanfare.sqlite"])
            #expect(result.status == 78, "\(result.errors)")
            #expect(result.errors.contains("yet; run: systemctl start fanfare"), "\(result.errors)")
        }
    }

    @Test func `a service is told to restart, and a user to start the daemon`() throws {
        func words(_ environment: [String: String], _ path: String) throws -> String {
            do {
                try UnreadableSecret.explained(environment: environment, isRoot: false) {
                    throw CredentialError.unreadable(path: path, reason: "Permission denied")
                }
                return ""
            } catch {
                return "\(error)"
            }
        }
        let path = "/etc/fanfare/keys/AuthKey_A.p8"
        let service = try words(["CREDENTIALS_DIRECTORY": "/run/credentials/fanfare.service"], path)
        #expect(
            service
                == "the service got no copy of AuthKey_A.p8 when it started; if the file is in /etc/fanfare/keys now, run: "
                + "systemctl restart fanfare")
        // Another reason, such as a file that is not there, keeps its own words.
        #expect(try words([:], "/nowhere/A.p8").hasPrefix("cannot read /nowhere/A.p8"))
    }

    /// What the daemon finds at its start is in the log at once, not with the first run.
    @Test func `a daemon says at its start which key it cannot use, and when it can again`() async throws {
        try await OwnThread.run {
            let place = try place()
            let key = try place.folder.read("key.p8")
            try FileManager.default.removeItem(atPath: place.folder.file("key.p8"))
            let daemon = try RunningProgram(["serve", "--log-format", "journal"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            #expect(daemon.errors.contains("<3>credential cannot be used"), "\(daemon.errors)")
            try place.folder.write(key, to: "key.p8")
            daemon.signal(SIGHUP)
            try daemon.wait { daemon.errors.contains("<5>credential can be used again") }
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
        }
    }

    @Test func `validate checks the configured folders where none is here`() async throws {
        try await OwnThread.run {
            let place = try place()
            let away = place.folder.file("away")
            try FileManager.default.createDirectory(atPath: away, withIntermediateDirectories: false)
            let process = Process()
            process.executableURL = Program.url
            process.arguments = ["validate"]
            process.currentDirectoryURL = URL(fileURLWithPath: away)
            process.environment = Program.environment(
                in: place.folder, ["FANFARE_CONFIG": place.folder.file("fanfare.yaml")])
            let pipe = Pipe()
            process.standardOutput = pipe
            try process.run()
            let output = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
            process.waitUntilExit()
            #expect(process.terminationStatus == 0 && output.contains("campaigns/new-podcast.yaml: ok"), "\(output)")
        }
    }
}
