import APNsSimulator
import Foundation
import GRDB
import TestSupport
import Testing

/// Who has a run is who lives: shown with processes that are stopped, killed, hidden and short of files.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Whoever has a run` {
    private func owner(_ place: Installation) throws -> String? {
        let queue = try place.patientQueue()
        defer { try? queue.close() }
        return try queue.read { try String.fetchOne($0, sql: "SELECT owner FROM run") }
    }

    /// As if nothing had been heard of anybody for an hour.
    private func makeSilent(_ place: Installation) throws {
        try place.change("UPDATE run SET heartbeat_at = heartbeat_at - 3600000")
        try place.change("UPDATE daemon SET heartbeat_at = heartbeat_at - 3600000")
    }

    @Test func `has it while it is stopped, however long, and a second one waits and says so`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let first = try place.startSlowRun()
            try first.stop(outsideTransactionsOf: place.folder.file("fanfare.sqlite"))
            try makeSilent(place)
            let owner = try owner(place)
            let second = try place.fanfare("run", "slow", "--occurrence", "a", "--yes")
            #expect(second.status == 75)
            for part in ["another process owns run 1", "fanfare run", "since 20", "stopped: `kill -CONT \(first.pid)`"]
            {
                #expect(second.errors.contains(part), "\(second.errors)")
            }
            let status = try place.fanfare("status", "1", "--json").output
            #expect(status.contains(#""process_state" : "stopped""#) && status.contains(#""process_since" : "20"#))
            #expect(try place.fanfare("status").output.contains("(stopped)"))
            let third = try RunningProgram(Installation.slowRun + ["--wait"], in: place.folder)
            try third.wait { third.errors.contains("waiting for") && third.errors.contains("stopped: ") }
            #expect(try self.owner(place) == owner)
            first.signal(SIGCONT)
            try third.wait { third.errors.contains("running) has run 1") }
            place.simulator.setFaults([])
            #expect(try first.finish().status == 0)
            #expect(try third.finish().status == 0)
            try place.expectOnceEach()
        }
    }

    @Test(arguments: Isolation.possible)
    func `loses it with its end, to whoever waits`(isolation: Isolation) async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            var times: [Duration] = []
            for occurrence in ["a", "b", "c"] {
                place.simulator.setFaults([Installation.slowAnswer])
                let words = ["run", "slow", "--occurrence", occurrence, "--yes"]
                let first = try place.startSlowRun(words, inside: isolation)
                let next = try RunningProgram(
                    isolation.arguments(words + ["--wait"]), in: place.folder, program: isolation.program)
                try next.wait { next.errors.contains("waiting for") }
                let known = Set(place.simulator.log().map(\.connection))
                let clock = ContinuousClock()
                let (stalls, killed) = (StalledTime(), clock.now)
                first.signal(SIGKILL)
                try next.wait { place.simulator.log().contains { !known.contains($0.connection) } }
                times.append(clock.now - killed - stalls.end())
                _ = try first.finish()
                place.simulator.setFaults([])
                let ended = try next.finish()
                #expect(ended.status == 0 && ended.output.contains("accepted            600"), "\(ended)")
            }
            // From the signal to the first request of whoever waited, on a machine that goes on.
            print("taken over, \(isolation): \(times.map { "\($0)" }.joined(separator: ", "))")
            // Not after some timeout.
            #expect(try #require(times.min()) < .seconds(20))
        }
    }

    @Test(arguments: Isolation.possible.filter { $0 != .none })
    func `has it where the other cannot see it`(isolation: Isolation) async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let first = try place.startSlowRun(inside: isolation)
            try makeSilent(place)
            for second in [Isolation.none, isolation] {
                let result = try Program.run(
                    second.arguments(Installation.slowRun), in: place.folder, program: second.program)
                #expect(result.status == 75, "\(result.errors)")
                let isUnseen = result.errors.contains("this machine cannot tell")
                #expect(isUnseen || second == .none, "\(result.errors)")
            }
            place.simulator.setFaults([])
            #expect(try first.finish().status == 0)
            try place.expectOnceEach()
        }
    }

    @Test func `stops when its lock file is deleted, and the next one goes on`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let first = try place.startSlowRun()
            try FileManager.default.removeItem(atPath: place.folder.file("fanfare.sqlite-senders"))
            let ended = try first.finish()
            #expect(ended.status == 75)
            #expect(ended.errors.contains("was deleted or replaced while this process was sending"), "\(ended.errors)")
            place.simulator.setFaults([])
            let next = try place.fanfare("run", "slow", "--occurrence", "a", "--yes")
            #expect(next.status == 0, "\(next.errors)")
            try place.expectOnceEach()
        }
    }

    @Test func `has it, whoever looks with however few files`() async throws {
        try await OwnThread.run {
            // The run outlasts all looks on a busy machine. An answer takes less than the 20 s that it may take.
            let slower = FaultRule(when: .always.skipping(16), action: .delay(milliseconds: 8_000))
            let place = try Installation.slow(faults: [slower])
            let first = try place.startSlowRun()
            let owner = try #require(try owner(place))
            for files in 3..<32 {
                _ = try Program.run(
                    ["-c", "ulimit -n \(files); exec \"$0\" status 1", Program.url.path], in: place.folder,
                    program: URL(filePath: "/bin/sh"))
                try #require(try self.owner(place) == owner, "with \(files) files")
            }
            place.simulator.setFaults([])
            #expect(try first.finish().status == 0)
            try place.expectOnceEach()
        }
    }

    @Test func `keeps its files to itself, whatever the umask, passes none on, and leaves none behind`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try RunningProgram(
                ["-c", "umask 0; exec \"$0\" \"$@\"", Program.url.path] + Installation.slowRun, in: place.folder,
                program: URL(filePath: "/bin/sh"))
            try run.wait { place.simulator.counts().accepted >= 20 }
            let folder = place.folder.file("fanfare.sqlite-senders")
            let files = FileManager.default
            #expect(try files.attributesOfItem(atPath: folder)[.posixPermissions] as? Int == 0o700)
            let names = try files.contentsOfDirectory(atPath: folder)
            #expect(names.contains("lock") && names.contains("16.sender"))
            for name in names {
                #expect(try files.attributesOfItem(atPath: "\(folder)/\(name)")[.posixPermissions] as? Int == 0o600)
            }
            let open = try files.contentsOfDirectory(atPath: "/proc/\(run.pid)/fd").filter { descriptor in
                let target = try? files.destinationOfSymbolicLink(atPath: "/proc/\(run.pid)/fd/\(descriptor)")
                return target == "\(folder)/lock"
            }
            #expect(open.count == 1)
            for descriptor in open {
                let info = try String(contentsOfFile: "/proc/\(run.pid)/fdinfo/\(descriptor)", encoding: .utf8)
                let flags = try #require(info.firstMatch(of: /flags:\s*([0-7]+)/)?.1)
                #expect(try #require(Int32(flags, radix: 8)) & O_CLOEXEC != 0)
            }
            place.simulator.setFaults([])
            #expect(try run.finish().status == 0)
            #expect(Set(try files.contentsOfDirectory(atPath: folder)) == ["lock", "STOP.spare"])
        }
    }

    @Test func `as the daemon has its registration while it is stopped, and loses it with its end`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let first = try RunningProgram(["serve"], in: place.folder)
            try first.wait { (try? place.fanfare("status").output.hasPrefix("daemon ")) == true }
            try first.stop(outsideTransactionsOf: place.folder.file("fanfare.sqlite"))
            try makeSilent(place)
            let second = try RunningProgram(["serve"], in: place.folder)
            try second.wait { second.errors.contains("another daemon") || second.errors.contains("files read") }
            for part in ["another daemon uses this store", "fanfare serve", "stopped: `kill -CONT \(first.pid)`"] {
                #expect(second.errors.contains(part), "\(second.errors)")
            }
            if second.errors.contains("files read") { second.signal(SIGKILL) }
            #expect(try second.finish().status == 75)
            #expect(try place.fanfare("status").output.hasPrefix("daemon "))
            #expect(try place.fanfare("run", "--due").errors.contains("the daemon already starts due runs"))
            first.signal(SIGKILL)
            _ = try first.finish()
            #expect(try !place.fanfare("status").output.contains("daemon "))
            let third = try RunningProgram(["serve"], in: place.folder)
            try third.wait { third.errors.contains("files read") }
            // Others would start one beside it.
            try FileManager.default.removeItem(atPath: place.folder.file("fanfare.sqlite-senders/lock"))
            let ended = try third.finish()
            #expect(ended.status == 75)
            #expect(ended.errors.contains("was deleted or replaced"), "\(ended.errors)")
        }
    }
}

/// What of the machine a program sees.
enum Isolation: String, CustomTestStringConvertible, CaseIterable {
    case none
    /// Process ids of its own, as in a container.
    case processes
    /// As a unit of systemd with `ProtectProc`, `ProcSubset` and `PrivateUsers`: only itself to be seen in `/proc`.
    case hidden

    /// Those that this machine lets a test have.
    static let possible = allCases.filter { isolation in
        guard isolation != .none else { return true }
        guard let folder = try? TemporaryDirectory() else { return false }
        let tried = try? Program.run(
            isolation.arguments([], program: "true"), in: folder, program: isolation.program)
        return tried?.status == 0
    }

    var testDescription: String { rawValue }

    var program: URL { self == .none ? Program.url : URL(filePath: "/usr/bin/env") }

    func arguments(_ words: [String], program: String = Program.url.path) -> [String] {
        let space = ["unshare"]
        return switch self {
        case .none: words
        case .processes:
            space + ["--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", program] + words
        case .hidden: space + ["--mount", "sh", "-c", Self.hiding, program] + words
        }
    }

    private static let hiding = """
        mount -t proc -o hidepid=ptraceable,subset=pid proc /proc && exec unshare --user --map-root-user "$0" "$@"
        """
}
