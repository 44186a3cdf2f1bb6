import APNsSimulator
import Foundation
import GRDB
import TestSupport
import Testing

/// What passes by itself ends no daemon, and what a person has to put right is named.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A daemon at 3 a.m.` {
    private func address(_ daemon: RunningProgram) throws -> String {
        try daemon.wait { daemon.errors.contains("pages, API, metrics and health checks") }
        let words = daemon.errors.split(whereSeparator: \.isWhitespace)
        let address = try #require(words.first { $0.hasPrefix("address=") })
        return String(address.dropFirst("address=".count))
    }

    private func limit(_ run: RunningProgram, _ limit: String, in place: Installation) throws {
        let result = try Program.run(
            ["--pid", "\(run.pid)", limit], in: place.folder, program: URL(fileURLWithPath: "/usr/bin/prlimit"))
        try #require(result.status == 0, "\(result.errors)")
    }

    /// libdispatch ends a process that has waiting work and no descriptor left, see `open_guard.c`.
    @Test func `without a descriptor left goes on once it has some`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let daemon = try RunningProgram(["serve"], in: place.folder, environment: ["SWIFT_BACKTRACE": "enable=no"])
            let address = try address(daemon)
            let run = try place.fanfare(Installation.slowRun + ["--no-wait"])
            #expect(run.status == 0, "\(run.errors)")
            try daemon.wait { place.simulator.counts().accepted >= 20 }
            try limit(daemon, "--nofile=5:", in: place)
            // It is kept busy for some looks of libdispatch, of which there is one every second.
            for turn in 1...20 {
                daemon.signal(SIGHUP)
                try daemon.wait { daemon.errors.components(separatedBy: "configuration not reloaded").count > turn }
                // Nothing takes the connection while no descriptor is free.
                _ = try? LocalPage.text("http://\(address)/healthz", within: .milliseconds(100))
            }
            try limit(daemon, "--nofile=1024:", in: place)
            place.simulator.setFaults([])
            try daemon.wait { place.simulator.counts().accepted == Installation.slowDevices }
            #expect(try place.fanfare("status").output.contains("slow"))
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
            #expect(daemon.errors.contains("campaigns from it stay loaded"), "\(daemon.errors)")
            try place.expectOnceEach()
        }
    }

    @Test(arguments: [true, false]) func `whose store is moved away sends nothing more`(isDaemon: Bool) async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let sender = try RunningProgram(isDaemon ? ["serve"] : Installation.slowRun, in: place.folder)
            if isDaemon {
                try sender.wait { sender.errors.contains("files read") }
                #expect(try place.fanfare(Installation.slowRun + ["--no-wait"]).status == 0)
            }
            try sender.wait { place.simulator.counts().accepted >= 20 }
            let path = place.folder.file("fanfare.sqlite")
            try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
            let end = try sender.finish()
            #expect(end.status == 75, "\(end.errors)")
            #expect(end.errors.contains("was moved, replaced or deleted while it was in use"), "\(end.errors)")
            #expect(place.simulator.counts().accepted < Installation.slowDevices)
        }
    }

    @Test func `whose port is taken has its pages once the port is free`() async throws {
        try await OwnThread.run {
            let place = try Installation(devices: 1)
            try place.importDevices()
            var taken: ClosedPort? = try ClosedPort()
            let port = "127.0.0.1:\(taken?.number ?? 0)"
            let text = try place.folder.read("fanfare.yaml")
            try place.folder.write(text.replacing("127.0.0.1:0", with: port), to: "fanfare.yaml")
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            #expect(!daemon.errors.contains("pages, API, metrics and health checks"))
            taken = nil
            #expect(try address(daemon) == port)
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
        }
    }

    @Test func `says within seconds that APNs gives no answer, on every way`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let daemon = try RunningProgram(["serve"], in: place.folder)
            let address = try address(daemon)
            #expect(try LocalPage.text("http://\(address)/readyz").contains("ready"))
            #expect(
                try LocalPage.text("http://\(address)/metrics").contains(
                    #"fanfare_endpoint_up{environment="production"} 1"#))
            #expect(try place.fanfare(Installation.slowRun + ["--no-wait"]).status == 0)
            try daemon.wait { place.simulator.counts().accepted >= 20 }
            place.simulator.setFaults([FaultRule(when: .always, action: .silence)])
            try daemon.wait { daemon.errors.contains("APNs cannot be reached; retrying") }
            let ready = try LocalPage.text("http://\(address)/readyz")
            #expect(ready.hasPrefix("ready: APNs (production, "), "\(ready)")
            #expect(ready.contains("has been unreachable since"), "\(ready)")
            #expect(
                try LocalPage.text("http://\(address)/metrics").contains(
                    #"fanfare_endpoint_up{environment="production"} 0"#))
            for words in [["status", "slow"], ["status"]] {
                // It is written down after it is logged.
                var status = ""
                try daemon.wait {
                    status = (try? place.fanfare(words).output) ?? ""
                    return status.contains("APNs has been unreachable since")
                }
                #expect(status.contains("retrying"), "\(status)")
            }
            place.simulator.setFaults([])
            try daemon.wait { daemon.errors.contains("APNs responds again") }
            #expect(try LocalPage.text("http://\(address)/readyz").contains("ready"))
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
        }
    }

    @Test(.enabled(if: FullDisk.isPossible))
    func `on a read-only file system names it with 75, and reading works there`()
        throws
    {
        let place = try Installation()
        try place.importDevices()
        let result = try FullDisk.run(
            """
            mount -o remount,size=64m full
            "$FANFARE" devices import devices.csv > /dev/null || exit 1
            mount -o remount,ro full
            "$FANFARE" devices show > /dev/null; echo "show $?"
            "$FANFARE" verify > /dev/null; echo "verify $?"
            "$FANFARE" backup copy.sqlite > /dev/null; echo "backup $?"
            "$FANFARE" devices import devices.csv; echo "import $?"
            "$FANFARE" serve; echo "serve $?"
            "$FANFARE" verify --store copy.sqlite > /dev/null; echo "copy $?"
            """, in: place.folder)
        for line in ["show 0", "verify 0", "backup 0", "import 75", "serve 75", "copy 0"] {
            #expect(result.output.contains(line), "\(result.output) \(result.errors)")
        }
        #expect(result.errors.contains("is mounted read-only"), "\(result.errors)")
    }
}
