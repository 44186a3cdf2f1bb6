import APNsSimulator
import Foundation
import TestSupport
import Testing

/// The daemon as a process, against the simulator.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The daemon` {
    private let place: Installation

    init() throws {
        place = try Installation(devices: 300)
        let devices = try place.fanfare("devices", "import", "devices.csv")
        try #require(devices.status == 0, "\(devices.errors)")
        try place.folder.write(
            "template: note\nalert: {en: {body: Hello}}\ndefault_locale: en\n", to: "templates/note.yaml")
    }

    /// - Parameter start: seconds from now.
    @discardableResult
    private func campaign(
        _ name: String, startsIn start: Int? = nil, pace: String = "100000/s", more: String = ""
    ) throws -> String {
        let date = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down) + Double(start ?? 0))
        let key = String(date.formatted(.iso8601).dropLast())
        let schedule = start == nil ? "" : "schedule: {at: \(key), zone: UTC, late_by_max: 2h}\n"
        try place.folder.write(
            """
            campaign: \(name)
            topic: \(Installation.topic)
            push_type: alert
            template: note
            audience: everyone
            pace: {rate: \(pace)}
            \(schedule)\(more)
            """,
            to: "campaigns/\(name).yaml")
        return key.hasSuffix(":00") ? String(key.dropLast(3)) : key
    }

    private func serve() throws -> RunningProgram {
        let program = try RunningProgram(["serve"], in: place.folder)
        try program.wait { program.errors.contains("files read") }
        return program
    }

    private func state(of run: String) throws -> String? {
        let result = try place.fanfare("status", run, "--json")
        guard result.status == 0 else { return nil }
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        return object?["state"] as? String
    }

    @Test func `picks up a file, sends it on time, and goes on with it after being killed`() throws {
        // The rest is never answered, so that the run is met in the middle.
        place.simulator.setFaults([FaultRule(when: .always.skipping(60), action: .silence)])
        var daemon = try serve()
        let start = (Date().timeIntervalSince1970.rounded(.down) + 1) * 1000
        try campaign("soon", startsIn: 1)
        try daemon.wait { place.simulator.counts().requests > 60 }
        daemon.signal(SIGKILL)
        _ = try daemon.finish()
        #expect(try state(of: "soon") == "running")
        place.simulator.setFaults([])
        daemon = try serve()
        try daemon.wait { daemon.errors.contains("run ended") }
        #expect(try state(of: "soon") == "finished")
        daemon.signal(SIGTERM)
        #expect(try daemon.finish().status == 0)
        let log = place.simulator.log()
        #expect(log.allSatisfy { Double($0.timeMs) >= start })
        #expect(Set(log.filter { $0.status == 200 }.compactMap(\.token)) == Set(place.tokens))
        // What was on its way when it was killed goes out once more, under its own id.
        #expect(log.count > place.tokens.count)
        #expect(Set(log.compactMap(\.apnsID)).count == place.tokens.count)
        #expect(try place.fanfare("report", "soon", "--check").status == 0)
    }

    @Test func `a pipe, a socket and a device among the campaigns stop nothing, and it says what they are`() throws {
        try campaign("soon")
        let folder = place.folder
        for name in ["campaigns/pipe.yaml", "templates/pipe.yaml"] { #expect(mkfifo(folder.file(name), 0o600) == 0) }
        try FileManager.default.createSymbolicLink(
            atPath: folder.file("campaigns/zero.yaml"), withDestinationPath: "/dev/zero")
        let checked = try place.fanfare("validate", "campaigns", "templates")
        #expect(checked.status == 65)
        #expect(checked.output.contains("campaigns/pipe.yaml: error: is a named pipe"), "\(checked.output)")
        #expect(checked.output.contains("campaigns/zero.yaml: error: is a device"))
        #expect(try place.fanfare("schedule").status == 65)
        let daemon = try serve()
        try Patience.wait(for: "the daemon to say what it read") {
            try place.fanfare("status").output.contains("pipe.yaml: error: is a named pipe")
        }
        #expect(try place.fanfare("run", "soon", "--occurrence", "o1", "--yes").status == 0)
        // One that comes later is found, too.
        #expect(mkfifo(folder.file("campaigns/later.yaml"), 0o600) == 0)
        try folder.write("campaign: also\n", to: "campaigns/also.yaml")
        try daemon.wait { daemon.errors.contains("later.yaml") }
        daemon.signal(SIGTERM)
        #expect(try daemon.finish().status == 0)
    }

    @Test(arguments: [true, false]) func `fired by five processes at once there is one run`(isServed: Bool) throws {
        try campaign("once", pace: "1000/s")
        let daemon = isServed ? try serve() : nil
        let programs = try (0..<5).map { _ in
            try RunningProgram(["run", "once", "--occurrence", "o", "--wait", "--yes"], in: place.folder)
        }
        for program in programs {
            let result = try program.finish()
            #expect(result.status == 0, "\(result.errors)")
            #expect(result.output.contains("accepted"))
        }
        #expect(place.simulator.counts().requests == place.tokens.count)
        #expect(try place.fanfare("status").output.components(separatedBy: "once/o").count == 2)
        if let daemon {
            // It says so after the store has it, and the store is what the others look at.
            try daemon.wait { daemon.errors.contains("run ended") }
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
        }
    }

    @Test func `a timer alone sends what is due, once, and what is four hours late is missed`() throws {
        try campaign("due", startsIn: -20)
        let late = try campaign("late", startsIn: -4 * 3600)
        let listed = try place.fanfare("schedule").output.split(separator: "\n")
        #expect(listed.count { $0.contains("due now: the daemon or `run --due` starts it") } == 1, "\(listed)")
        #expect(listed.dropFirst().first?.contains(" due now: ") == true, "\(listed)")
        let first = try place.fanfare("run", "--due")
        #expect(try !place.fanfare("schedule").output.contains("due now"))
        // What it found missed is told once.
        #expect(first.status == 3 && first.errors.contains("was missed: found 4h"), "\(first.errors)")
        #expect(first.output.contains("due, occurrence"))
        #expect(place.simulator.counts().requests == place.tokens.count)
        #expect(try state(of: "due") == "finished")
        #expect(try state(of: "late") == "missed")
        let second = try place.fanfare("run", "--due")
        #expect(second.status == 0 && second.output.contains("nothing is due"))
        #expect(place.simulator.counts().requests == place.tokens.count)
        let key = try campaign("later", startsIn: -5 * 3600)
        #expect(try place.fanfare("run", "later", "--occurrence", key).status == 3)
        // However its time is written, it is that occurrence.
        let written = key.count == 16 ? key + ":00" : key
        #expect(try place.fanfare("run", "later", "--occurrence", written).status == 3)
        #expect(try place.fanfare("status").output.components(separatedBy: "later/").count == 2)
        #expect(try state(of: "later") == "missed")
        #expect(late != key)
        let early = try campaign("early", startsIn: 3600)
        #expect(try place.fanfare("run", "early", "--occurrence", early).status == 75)
    }

    @Test func `a file that has become wrong keeps what it said, and that is told`() throws {
        try campaign("fine", startsIn: 3600)
        let daemon = try serve()
        try place.folder.write("campaign: fine\ntopc: x\n", to: "campaigns/fine.yaml")
        try daemon.wait { daemon.errors.contains("file not reloaded") }
        try daemon.wait { (try? place.fanfare("status").output.contains("campaigns/fine.yaml")) == true }
        #expect(try place.fanfare("status").output.contains("4 campaigns, 1 scheduled; next fine at"))
        try campaign("fine", startsIn: 7200)
        daemon.signal(SIGHUP)
        try daemon.wait { (try? place.fanfare("status").output.contains("campaigns/fine.yaml")) == false }
        #expect(try place.fanfare("run", "fine", "--no-wait", "--yes").status == 0)
        try daemon.wait { daemon.errors.contains("run ended") }
        #expect(try state(of: "fine") == "finished")
        #expect(try place.fanfare("serve").status == 75)
        daemon.signal(SIGTERM)
        #expect(try daemon.finish().status == 0)
        #expect(try place.fanfare("run", "fine", "--no-wait", "--yes").status == 75)
    }

    @Test func `tells the service manager how it is, and keeps its watchdog calm`() throws {
        let socket = try NoticeSocket()
        let daemon = try RunningProgram(
            ["serve"], in: place.folder,
            environment: ["NOTIFY_SOCKET": socket.name, "WATCHDOG_USEC": "200000"])
        // Opening the store may take longer than the manager waits for a start.
        #expect(try socket.next() == "EXTEND_TIMEOUT_USEC=60000000")
        _ = try socket.notices(through: "READY=1")
        let status = try #require(try socket.notices(through: "STATUS=").last)
        #expect(status.contains("campaigns"))
        for _ in 0..<3 { _ = try socket.notices(through: "WATCHDOG=1") }
        daemon.signal(SIGHUP)
        let reloading = try #require(try socket.notices(through: "RELOADING=1").last)
        #expect(reloading.contains("\nMONOTONIC_USEC="))
        _ = try socket.notices(through: "READY=1")
        daemon.signal(SIGTERM)
        _ = try socket.notices(through: "STOPPING=1")
        #expect(try daemon.finish().status == 0)
    }
}
