import APNsSimulator
import Foundation
import TestSupport
import Testing

/// How a process ends: by its own will at once, and with a word when it crashes.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The end of a process` {
    /// Threads that end connections still use OpenSSL and libpq, which their exit handlers take apart.
    @Test(arguments: [
        ["--version"], ["--help"], ["status"], ["devices", "import", "devices.csv"], ["validate", "nowhere.yaml"],
        ["status", "--nonsense"],
    ])
    func `comes without the exit handlers of its libraries`(words: [String]) throws {
        let place = try Installation(devices: 2)
        let expected = try Program.run(words, in: place.folder)
        let result = try Program.run(
            words, in: place.folder, environment: ["LD_PRELOAD": BuiltProgram.killSwitch, "KILL_SWITCH": "exiting:1"])
        #expect(result.status == expected.status && result.status != SIGKILL)
        #expect(result.errors == expected.errors)
        // An import says the second time that it brought nothing new.
        #expect(words[0] == "devices" || result.output == expected.output)
    }

    /// A fault whose signal is blocked ends the process without its backtrace.
    @Test(.enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
    func `by a crash is told by every thread`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let place = try Installation.slow(store: cluster.url(database))
            let run = try place.startSlowRun()
            var names: Set<String> = []
            for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/\(run.pid)/task") {
                let path = "/proc/\(run.pid)/task/\(thread)"
                // One that has ended meanwhile has no file.
                guard let status = try? String(contentsOfFile: "\(path)/status", encoding: .utf8),
                    let name = status.firstMatch(of: /Name:\s+(.*)/)?.output.1,
                    let mask = status.firstMatch(of: /SigBlk:\s+([0-9a-f]+)/)?.output.1
                else { continue }
                let blocked = try #require(UInt64(mask, radix: 16))
                names.insert(String(name))
                for fault in [SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
                    #expect(blocked & (1 << (UInt64(fault) - 1)) == 0, "\(name) blocks \(fault)")
                }
            }
            #expect(names.contains("postgres") && names.count > 2, "\(names)")
        }
    }

    /// Standard error may be a pipe that nothing empties any more, or a terminal that stands still.
    @Test func `comes by signals though no process reads its notes`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let path = place.folder.file("notes")
            try #require(mkfifo(path, 0o600) == 0)
            let notes = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            defer { close(notes) }
            let run = try Self.started(place, "exec \"$0\" \"$@\" 2>notes")
            let full = [UInt8](repeating: 0x20, count: 4096)
            while write(notes, full, full.count) > 0 {}
            run.signal(SIGINT)
            try run.wait { (try? place.fanfare("status", "slow").output.contains("no process sends it")) ?? false }
            #expect(place.simulator.counts().accepted < Installation.slowDevices)
            run.signal(SIGINT)
            #expect(try run.finish().status == 75)
        }
    }

    /// The account of a simulator waits for a reader of its output.
    @Test func `comes by a second signal to a simulator`() async throws {
        try await OwnThread.run {
            let folder = try TemporaryDirectory()
            let path = folder.file("output")
            try #require(mkfifo(path, 0o600) == 0)
            let output = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            defer { close(output) }
            let words =
                ["-c", "exec \"$0\" \"$@\" >output", Program.url.path] + [
                    "simulator", "--port", "0", "--sandbox-port", "0", "--accept-all", "--log", "log.jsonl",
                ]
            let simulator = try RunningProgram(words, in: folder, program: URL(fileURLWithPath: "/bin/sh"))
            var buffer = [UInt8](repeating: 0x20, count: 4096)
            var start = ""
            try simulator.wait {
                let count = read(output, &buffer, buffer.count)
                if count > 0 { start += String(decoding: buffer.prefix(count), as: UTF8.self) }
                return start.contains("trust: ")
            }
            let full = [UInt8](repeating: 0x20, count: 4096)
            while write(output, full, full.count) > 0 {}
            let port = try #require(start.firstMatch(of: /production 127.0.0.1:(\d+)/).flatMap { Int($0.1) })
            simulator.signal(SIGINT)
            // It listens no more: the first signal has come.
            try simulator.wait { !Self.isListening(port) }
            simulator.signal(SIGINT)
            #expect(try simulator.finish().status == 75)
        }
    }

    private static func isListening(_ port: Int) -> Bool {
        let sockets = (try? String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)) ?? ""
        return sockets.contains(":\(String(format: "%04X", port)) 00000000:0000 0A")
    }

    @Test func `that was started without its streams uses their numbers for nothing else`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try Self.started(place, "exec \"$0\" \"$@\" <&- >&- 2>&-")
            let streams = try (0...2).map {
                try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(run.pid)/fd/\($0)")
            }
            #expect(streams == ["/dev/null", "/dev/null", "/dev/null"])
            place.simulator.setFaults([])
            // Its report has no reader.
            #expect(try run.finish().status == 74)
            try place.expectOnceEach()
        }
    }

    /// The slow run in the middle, started by a shell.
    private static func started(_ place: Installation, _ command: String) throws -> RunningProgram {
        let before = place.simulator.counts().accepted
        let words = ["-c", command, Program.url.path] + Installation.slowRun
        let run = try RunningProgram(words, in: place.folder, program: URL(fileURLWithPath: "/bin/sh"))
        try run.wait { place.simulator.counts().accepted >= before + 20 }
        return run
    }
}
