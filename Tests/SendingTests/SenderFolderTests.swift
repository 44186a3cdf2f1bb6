import APNs
import Foundation
import Logging
import LonePipeline
import Model
import SQLiteStore
@testable import Senders
@testable import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `A sender's registration` {
    private let folder: TemporaryDirectory
    private let senders: SenderFolder

    init() throws {
        folder = try TemporaryDirectory()
        senders = Self.senders(folder)
    }

    private static func senders(
        _ folder: TemporaryDirectory, store: String = "s.sqlite", locks: FileLocks = .kernel
    ) -> SenderFolder {
        SenderFolder(
            besideStore: folder.file(store), command: "run", now: { Timestamp(milliseconds: 1_800_000_000_000) },
            locks: locks)
    }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test func `is held until it is left, and its number is never drawn again`() throws {
        let first = try senders.register()
        let second = try senders.register()
        #expect([first.number, second.number] == [16, 17])
        #expect(senders.liveness(of: first.name) == .held && senders.liveness(of: second.name) == .held)
        let name = first.name
        first.release()
        #expect(senders.liveness(of: name) == .gone && senders.liveness(of: second.name) == .held)
        #expect(!senders.isAlive(name) && senders.isAlive(second.name))
        senders.remove(16)
        #expect(try senders.register().number == 18)
    }

    @Test func `is named before a migration for as long as it is held`() throws {
        #expect(senders.livingSender() == nil)
        let registration = try senders.register()
        #expect(senders.livingSender() == "sender 16 (run)")
        registration.release()
        #expect(senders.livingSender() == nil)
    }

    @Test func `is not taken while a restore holds the senders still`() throws {
        let hold = try senders.holdStarts()
        #expect(throws: SenderError.lockFileBusy(path: senders.lockPath)) { try senders.register() }
        // Two restores at once, too.
        #expect(throws: SenderError.lockFileBusy(path: senders.lockPath)) { try senders.holdStarts() }
        #expect(senders.livingSender() == nil)
        hold.release()
        let registration = try senders.register()
        #expect(registration.number == 16 && senders.livingSender() != nil)
        try senders.holdStarts().release()
    }

    @Test func `lies with its files beside the store, for its owner's eyes alone`() throws {
        let registration = try senders.register()
        #expect(senders.path == folder.file("s.sqlite-senders"))
        #expect(registration.journalPath == senders.path + "/16.journal")
        #expect(senders.journalPath(ofOwner: registration.name) == registration.journalPath)
        #expect(ProcessName.shown(registration.name) == "\(ProcessInfo.processInfo.hostName):\(getpid())")
        #expect(try mode(senders.path) == 0o700)
        for name in ["lock", "16.sender"] { #expect(try mode("\(senders.path)/\(name)") == 0o600) }
    }

    @Test func `of a store elsewhere is in a folder of this machine's, and another machine's never counts as gone`()
        throws
    {
        func senders(_ state: String) -> SenderFolder {
            SenderFolder(
                ofStoreElsewhere: (high: 0x00AB_CDEF_0000_0001, low: 2), in: folder.file(state), command: "run",
                now: { Timestamp(milliseconds: 1_800_000_000_000) })
        }
        let (here, there) = (senders("a/b"), senders("c"))
        let (own, other) = (try here.register(), try there.register())
        #expect(here.path == folder.file("a/b/senders-00abcdef"))
        for path in ["a", "a/b", "a/b/senders-00abcdef"] { #expect(try mode(folder.file(path)) == 0o700) }
        // Both have the number 16, each of a lock file of its own.
        let (ownName, otherName) = (own.name, other.name)
        #expect(here.liveness(of: ownName) == .held && here.holder(ownName).since != nil)
        own.release()
        other.release()
        #expect(here.liveness(of: ownName) == .gone)
        for name in [otherName, "web1:7:16:\(UUID())"] {
            guard case .unknown = here.liveness(of: name) else { return #expect(Bool(false), "\(name)") }
            #expect(here.isAlive(name) && here.holder(name).since == nil && here.journalPath(ofOwner: name) == nil)
        }
        #expect(here.holder(otherName).summary.contains("a sender of another machine, which `fanfare status` shows"))
        for (state, shown, words) in [
            (SenderOnRecord.State.alive, RunHolder.State.running, "on another machine, running)"),
            (.silent, .unseen, "on another machine, no heartbeat since 1970-01-01T00:00:09Z)"),
            (.gone, .ended, "on another machine, dead since 1970-01-01T00:00:09Z: other senders take over its work)"),
        ] {
            var facts = SenderFacts()
            facts.command = "fanfare serve"
            let told = here.holder(otherName).told(
                by: SenderOnRecord(
                    name: otherName, term: 3, since: Timestamp(milliseconds: 5_000),
                    heardAt: Timestamp(milliseconds: 9_000), state: state, isCoordinator: false, facts: facts))
            #expect(told.state == shown)
            #expect(told.summary.hasSuffix(" (fanfare serve, since 1970-01-01T00:00:05Z, \(words)"), "\(told.summary)")
            // What this machine knows itself, nobody tells it.
            #expect(here.holder(ownName).told(by: nil) == here.holder(ownName))
        }
        // Before anybody has sent from here nothing is known of anybody.
        #expect(senders("d").isAlive(ownName))
        // Beside a file, another lock file's number is gone.
        #expect(!self.senders.isAlive(otherName))
    }

    @Test func `says who holds it, since when and in which state`() throws {
        let registration = try senders.register()
        let holder = senders.holder(registration.name)
        #expect(holder.state == .running && holder.since == Timestamp(milliseconds: 1_800_000_000_000))
        #expect(holder.summary == "\(holder.process) (fanfare run, since 2027-01-15T08:00:00Z, running)")
        // Another process of that number, or none that can be seen.
        try Data(#"{"start":1,"beganAt":5,"command":"run"}"#.utf8).write(
            to: URL(filePath: senders.path + "/16.sender"))
        #expect(senders.holder(registration.name).state == .unseen)
        senders.remove(16)
        #expect(senders.holder(registration.name).state == .unseen)
        #expect(senders.holder(registration.name).summary.contains("this machine cannot tell"))
        let name = registration.name
        registration.release()
        #expect(senders.holder(name).state == .ended)
    }

    @Test func `is not lost when something else in the process opens and closes the lock file`() throws {
        let registration = try senders.register()
        for _ in 0..<3 { _ = try String(contentsOfFile: senders.lockPath, encoding: .utf8) }
        #expect(senders.liveness(of: registration.name) == .held)
    }

    @Test func `is not passed on to a program that the process starts`() async throws {
        let registration = try senders.register()
        let name = registration.name
        // Foundation's Process would close everything by itself.
        let (into, out) = (try Self.pipe(), try Self.pipe())
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, into.read, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO)
        var pid: pid_t = 0
        let arguments = [strdup("cat"), nil]
        defer { free(arguments[0]) }
        try #require(posix_spawnp(&pid, "cat", &actions, nil, arguments, environ) == 0)
        // It is another program once it answers.
        var byte: UInt8 = 7
        #expect(write(into.write, &byte, 1) == 1 && read(out.read, &byte, 1) == 1)
        registration.release()
        #expect(senders.liveness(of: name) == .gone)
        for end in [into.read, into.write, out.read, out.write] { close(end) }
        var status: Int32 = -1
        waitpid(pid, &status, 0)
        #expect(status == 0)
    }

    private static func pipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(Foundation.pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    @Test func `has a number of its own, however many are taken at once`() async throws {
        let senders = senders
        let registrations = try await withThrowingTaskGroup(of: SenderRegistration.self) { group in
            for _ in 0..<40 { group.addTask { try senders.register() } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(registrations.map(\.number)) == Set(16..<56))
        #expect(registrations.allSatisfy { senders.liveness(of: $0.name) == .held })
    }

    @Test func `says nothing about numbers of a lock file that was deleted, and notices that it was`() throws {
        let registration = try senders.register()
        #expect(registration.isIntact)
        try FileManager.default.removeItem(atPath: senders.lockPath)
        #expect(!registration.isIntact)
        #expect(throws: SenderError.registrationLost(path: senders.lockPath)) { try registration.requireIntact() }
        #expect(senders.liveness(of: registration.name) == .gone)
        let next = try senders.register()
        // What it left lies there under its number.
        #expect(next.number == 17 && next.isIntact && !registration.isIntact)
        #expect(senders.liveness(of: registration.name) == .gone && senders.liveness(of: next.name) == .held)
        #expect(senders.journalPath(ofOwner: registration.name) == nil)
    }

    @Test func `is one folder's, by whatever links the store is named`() throws {
        let registration = try senders.register()
        try FileManager.default.createDirectory(atPath: folder.file("real/inner"), withIntermediateDirectories: true)
        let links = [
            ("direct.sqlite", "s.sqlite"), ("twice.sqlite", "./direct.sqlite"), ("way", "."), ("deep", "real/inner"),
        ]
        for (link, target) in links {
            try FileManager.default.createSymbolicLink(atPath: folder.file(link), withDestinationPath: target)
        }
        for name in [
            "direct.sqlite", "twice.sqlite", "way/s.sqlite", "./real/../s.sqlite", "way/way/twice.sqlite",
            "deep/../../s.sqlite",
        ] {
            #expect(Self.senders(folder, store: name).path == senders.path, "\(name)")
            #expect(Self.senders(folder, store: name).liveness(of: registration.name) == .held)
        }
    }

    @Test(arguments: [
        // Of another boot, and a process whose start was known.
        ("host:1:7:4026531836:00000000", SenderLiveness.gone),
        ("a", .unknown("an older Fanfare claimed the run, and may be alive; stop it, or restart this machine")),
        (
            "host:1:0:0:",
            .unknown("an older Fanfare claimed the run, and may be alive; stop it, or restart this machine")
        ),
        ("host:1:16:8f14e45f-ceea-467f-9f4a-30c6b8f4e2aa", .gone),
    ])
    func `tells of a name that no sender has what can be known`(
        name: String, expected: SenderLiveness
    ) throws {
        _ = try senders.register()
        #expect(senders.liveness(of: name) == expected)
    }

    @Test func `is held, for all anybody knows, where too many files are open`() throws {
        let registration = try senders.register()
        var locks = FileLocks.kernel
        for code in [EMFILE, ENFILE, EACCES, EIO] {
            locks.open = { _, _ in -code }
            let blind = Self.senders(folder, locks: locks)
            let reason = "\(senders.lockPath): \(String(cString: strerror(code)))"
            #expect(blind.liveness(of: registration.name) == .unknown(reason))
            #expect(blind.isAlive(registration.name))
            #expect(blind.holder(registration.name).summary.contains("treated as alive: \(reason)"))
            #expect(throws: SenderError.self) { try blind.register() }
        }
        let name = registration.name
        registration.release()
        #expect(Self.senders(folder, locks: locks).isAlive(name) && !senders.isAlive(name))
    }

    @Test(arguments: [EINVAL, ENOLCK, EOPNOTSUPP, ENOSYS])
    func `is refused where the file system keeps no locks, with what to do`(code: Int32) throws {
        var locks = FileLocks.kernel
        locks.lock = { _, _, type, _, _ in (type, code) }
        do {
            _ = try Self.senders(folder, locks: locks).register()
            Issue.record("taken")
        } catch {
            let words = "\(error)"
            for part in [senders.path, String(cString: strerror(code)), "local file system"] {
                #expect(words.contains(part), "\(words)")
            }
        }
    }

    @Test func `is refused where locks are granted and not kept`() throws {
        var locks = FileLocks.kernel
        locks.lock = { _, request, type, _, _ in (request == .get ? Int16(F_UNLCK) : type, 0) }
        #expect(throws: SenderError.noLocks(path: senders.path, reason: "a lock was granted but does not hold")) {
            try Self.senders(folder, locks: locks).register()
        }
    }

    @Test(arguments: ["nonsense", ""])
    func `outlives what was written in the lock file, which is written anew only when nobody is there`(
        text: String
    ) throws {
        let registration = try senders.register()
        try Data(text.utf8).write(to: URL(filePath: senders.lockPath), options: [])
        #expect(registration.isIntact && senders.isAlive(registration.name))
        #expect(throws: SenderError.lockFileDamaged(path: senders.lockPath)) { try senders.register() }
        let name = registration.name
        registration.release()
        let next = try senders.register()
        #expect(next.number == 17 && senders.liveness(of: name) == .gone)
    }

    @Test func `has a number above all that left a file, also under a lock file put back from a copy`() throws {
        let lock = URL(filePath: senders.lockPath)
        _ = try senders.register()
        let copy = try Data(contentsOf: lock)
        let registrations = try (0..<3).map { _ in try senders.register() }
        try copy.write(to: lock, options: [])
        senders.remove(19)
        // 19 is held, and has no file any more.
        #expect(try senders.register().number == 20)
        #expect(registrations.map(\.number) == [17, 18, 19])
    }

    @Test func `of the daemon is one at a time`() throws {
        let (first, second) = (try senders.register(), try senders.register())
        #expect(senders.daemon() == nil)
        #expect(try first.becomeDaemon())
        #expect(try first.becomeDaemon())
        #expect(try !second.becomeDaemon())
        #expect(senders.daemon() == senders.holder(first.name))
        first.release()
        #expect(senders.daemon() == nil)
        #expect(try second.becomeDaemon())
        #expect(senders.daemon() == senders.holder(second.name))
    }

    @Test func `leaves files that are deleted when it is gone and no run and no lease is its own`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let registrations = try (0..<4).map { _ in try senders.register() }
        for registration in registrations { try Data().write(to: URL(filePath: registration.journalPath)) }
        for (number, registration) in registrations[0...1].enumerated() {
            let run = try await scene.start(try scene.definition(), occurrence: "\(number)")
            let claim = try await scene.store.claim(run.id, by: Actor(registration.name), now: scene.clock.now)
            #expect(claim == .claimed)
        }
        for registration in registrations[1...2] { registration.release() }
        try await senders.removeUnneeded(scene.store)
        let names = try FileManager.default.contentsOfDirectory(atPath: senders.path).sorted()
        // 16 lives and sends, 17 is gone and has a run, 18 is gone, 19 lives.
        #expect(
            names == [
                "16.journal", "16.sender", "17.journal", "17.sender", "19.journal", "19.sender", "STOP.spare", "lock",
            ])
        try scene.store.close()
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A sender whose registration is lost` {
    @Test func `stops, records what it has heard, and says why`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let senders = SenderFolder(
            besideStore: scene.folder.file("store.sqlite"), command: "run", now: { scene.clock.now })
        let registration = try senders.register()
        let control = Mutex<RunControl?>(nil)
        let transport = SlowTransport(answersAtOnce: 10) {
            try? FileManager.default.removeItem(atPath: senders.lockPath)
            await control.withLock { $0 }?.decision.halted()
        }
        var sender = SendingSetup(
            transport: transport, endpoints: [.production: .production], lanesPerEnvironment: 1,
            silentBudget: .init(limit: 3, window: .seconds(3600)))
        sender.leaseMax = 10
        let run = try await scene.start(try scene.definition())
        let pipeline = LonePipeline(
            store: scene.store, sender: sender, clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test"),
            registration: registration)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await scene.clock.run(inStepsOf: .seconds(1)) }
            await #expect(throws: SenderError.registrationLost(path: senders.lockPath)) {
                try await pipeline.execute(run, as: Actor(registration.name)) { started, _ in
                    control.withLock { $0 = started }
                }
            }
            scene.clock.release()
            try await group.waitForAll()
        }
        let counts = try await scene.report(run).counts
        #expect(counts.leased == 0 && counts.accepted > 0 && counts.accepted + counts.pending == 100)
    }
}
