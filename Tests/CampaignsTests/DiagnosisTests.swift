import Foundation
import Model
import Platform
import SQLiteStore
import Senders
import Sending
import Store
import Synchronization
import TestSupport
import Testing

@testable import Campaigns

/// What the machine says, and what doctor makes of it.
struct DiagnosisTests {
    private static let configured = """
        store: fanfare.sqlite
        campaigns: .
        templates: .
        apps:
          - {topic: com.example.wendercast, team_id: DEF123GHIJ, key_id: ABC123DEFG, key_path: AuthKey_ABC123DEFG.p8}
        """

    private func diagnose(
        isClockKept: Bool? = true, openFilesMax: Int? = 1024, threadsMax: Int? = nil, networkFileSystem: String? = nil,
        expiresAt: Timestamp? = nil, topics: [String] = [], proxy: ProxyUse = .direct,
        reach: Reachability = Reachability(endpoint: "host:443", isWell: true, summary: "answers"),
        now: Timestamp = Timestamp(Date()), network: Bool = false, more: String = "", token: String? = nil
    ) async throws -> DiagnosisResult {
        let folder = try TemporaryDirectory()
        let path = try folder.write(Self.configured + "\n" + more, to: "fanfare.yaml")
        let store = try SQLiteFileStore(path: folder.path + "/fanfare.sqlite")
        if let token {
            _ = try await ManageAccess(store: store).create(
                name: token, role: .sender, topic: nil, expiresIn: nil, by: "amy", now: now)
        }
        try store.close()
        let machine = MachineFacts(
            version: "1", system: "s", libraries: "l", user: "u", isClockKept: isClockKept, openFilesMax: openFilesMax,
            threadsMax: threadsMax, networkFileSystem: { _ in networkFileSystem })
        let probes = DiagnoseInstallation.Probes(
            openStore: { path in
                OpenedStore(
                    store: try SQLiteFileStore(path: path, access: .reading),
                    senders: SenderFolder(besideStore: path, command: "doctor", now: { now }))
            },
            credential: { _, _ in CredentialFacts(expiresAt: expiresAt, topics: topics) },
            proxy: { _ in proxy }, reach: { _, _, _ in reach }, machine: machine)
        return await DiagnoseInstallation(
            source: ConfigurationSource(named: path, environment: [:]), environment: [:], probes: probes, now: now
        ).diagnose(network: network)
    }

    @Test func `a service's page waits a second at most for its checks, and shows none of long ago`() async throws {
        let folder = try TemporaryDirectory()
        let path = try folder.write(Self.configured, to: "fanfare.yaml")
        let store = try SQLiteFileStore(path: folder.path + "/fanfare.sqlite")
        let gate = DispatchSemaphore(value: 0)
        let checks = Mutex(0)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let probes = DiagnoseInstallation.Probes(
            openStore: { _ in throw CancellationError() },
            credential: { _, _ in
                // As a key on a file system that does not respond.
                gate.wait()
                throw CancellationError()
            },
            proxy: { _ in .direct }, reach: { _, _, _ in Reachability(endpoint: "", isWell: true, summary: "") },
            machine: MachineFacts(
                version: "1", system: "s", libraries: "l", user: "u", isClockKept: true, openFilesMax: nil,
                threadsMax: nil, networkFileSystem: { _ in nil }))
        let uptime = Mutex(Duration.zero)
        let health = InstallationHealth(
            store: store,
            clock: WallClock(
                now: { Timestamp(Date()) }, uptime: { uptime.withLock { $0 } },
                sleep: { _ in })
        ) {
            checks.withLock { $0 += 1 }
            end.yield()
            return DiagnoseInstallation(
                source: ConfigurationSource(named: path, environment: [:]), environment: [:], probes: probes,
                now: Timestamp(Date()))
        }
        for _ in 0..<3 {
            let found = await health.latest()
            #expect(found.map(\.state) == [.skipped])
            #expect(found.first?.message.hasPrefix("could not check configuration, keys and rights, because ") == true)
        }
        _ = await ended.first { _ in true }
        gate.signal()
        gate.signal()
        let deadline = ContinuousClock.now + .seconds(60)
        while await !health.latest().contains(where: { $0.check == .credential && $0.state == .wrong }) {
            try #require(ContinuousClock.now < deadline)
            await Task.yield()
        }
        #expect(checks.withLock { $0 } == 1)
        // Findings of long ago are not shown: the page checks again.
        uptime.withLock { $0 += .seconds(125) }
        #expect(await health.latest().map(\.state) == [.skipped])
        gate.signal()
        gate.signal()
        while await !health.latest().contains(where: { $0.check == .credential && $0.state == .wrong }) {
            try #require(ContinuousClock.now < deadline)
            await Task.yield()
        }
        #expect(checks.withLock { $0 } == 2)
        try store.close()
    }

    @Test func `a key file that others can read is named, also if its content is wrong`() async throws {
        for isWrong in [false, true] {
            let folder = try TemporaryDirectory()
            let path = try folder.write(
                Self.configured.replacing("AuthKey_", with: folder.file("AuthKey_")), to: "fanfare.yaml")
            let key = try folder.write("key", to: "AuthKey_ABC123DEFG.p8")
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
            let probes = DiagnoseInstallation.Probes(
                openStore: { _ in throw CancellationError() },
                credential: { _, _ in
                    if isWrong { throw Failure(.configuration, "is damaged") }
                    return CredentialFacts()
                },
                proxy: { _ in .direct }, reach: { _, _, _ in Reachability(endpoint: "", isWell: true, summary: "") },
                machine: MachineFacts(
                    version: "1", system: "s", libraries: "l", user: "u", isClockKept: true, openFilesMax: nil,
                    threadsMax: nil, networkFileSystem: { _ in nil }))
            let result = await DiagnoseInstallation(
                source: ConfigurationSource(named: path, environment: [:]), environment: [:], probes: probes,
                now: Timestamp(Date())
            ).diagnose(network: false)
            let found = findings(.credential, in: result)
            #expect(found.map(\.state) == (isWrong ? [.wrong, .warning] : [.warning]))
            #expect(found.last?.message.contains("chmod 600 \(key)") == true, "\(found)")
        }
    }

    @Test(arguments: [(999_999, false, true), (1_000_000, false, false), (50_000_000, true, true)])
    func `a store on a full disk cannot be written, though it can be read`(free: Int, hasNoFiles: Bool, isFull: Bool) {
        let space = DiskSpace(folder: "/data", freeBytes: free, isWithoutFiles: hasNoFiles)
        let reason = ObserveStore.fullDisk(of: "/data/a.sqlite") { _ in space }
        #expect((reason != nil) == isFull)
        #expect(reason?.contains("the store /data/a.sqlite: \(space.summary); free disk space there") ?? true)
        #expect(ObserveStore.fullDisk(of: "postgres://host/a") { _ in space } == nil)
    }

    private func findings(_ check: Finding.Check, in result: DiagnosisResult) -> [Finding] {
        result.checks.filter { $0.check == check }
    }

    @Test func `a clock that nothing keeps is a warning, and no reason to fail`() async throws {
        let result = try await diagnose(isClockKept: false)
        #expect(findings(.clock, in: result).map(\.state) == [.warning])
        #expect(result.failure == nil)
        #expect(findings(.clock, in: try await diagnose(isClockKept: nil)).map(\.state) == [.skipped])
    }

    @Test func `a store written after now means a clock that went back`() async throws {
        let result = try await diagnose(now: Timestamp(Date()) - .seconds(86_400))
        #expect(findings(.clock, in: result).map(\.state) == [.ok, .wrong])
        #expect(result.failure == .configuration)
    }

    @Test func `too few files or threads for the connections are named with what raises them`() async throws {
        // 4 connections to each of two environments.
        let files = findings(.limits, in: try await diagnose(openFilesMax: 231))
        #expect(files.map(\.state) == [.wrong])
        #expect(files.first?.message.contains("8 connections need 232; raise the limit (LimitNOFILE=") == true)
        #expect(findings(.limits, in: try await diagnose(openFilesMax: 232)).map(\.state) == [.ok])
        let threads = findings(.limits, in: try await diagnose(threadsMax: 71))
        #expect(threads.first?.message.contains("TasksMax=") == true)
    }

    @Test func `a store on a network file system is refused`() async throws {
        let found = findings(.store, in: try await diagnose(networkFileSystem: "NFS"))
        #expect(found.map(\.state) == [.wrong])
        #expect(found.first?.message.contains("NFS") == true)
    }

    @Test func `a certificate is shown with its topics and its end, and one for another topic is doubted`() async throws
    {
        let now = Timestamp(seconds: 1_800_000_000)
        func found(_ topics: [String]) async throws -> Finding? {
            findings(
                .credential, in: try await diagnose(expiresAt: now + .seconds(90 * 86_400), topics: topics, now: now)
            ).first
        }
        let right = try #require(try await found(["com.example.wendercast", "com.example.wendercast.voip"]))
        #expect(right.state == .ok)
        let words = ", for com.example.wendercast, com.example.wendercast.voip, valid until 2027-04-15"
        #expect(right.message.contains(words), "\(right.message)")
        let other = try #require(try await found(["com.example.other"]))
        #expect(other.state == .warning)
        #expect(other.message.contains("is for com.example.other, but topic is com.example.wendercast"))
    }

    @Test func `the proxy that pushes go through is named`() async throws {
        let used = ProxyUse.used(variable: "https_proxy", proxy: "the proxy proxy.example.com:3128")
        let finding = try #require(findings(.proxy, in: try await diagnose(proxy: used)).first)
        #expect(finding.state == .ok)
        #expect(finding.message.contains("through the proxy proxy.example.com:3128, which https_proxy names"))
    }

    @Test func `a certificate is to be renewed from 30 days before its end`() async throws {
        let now = Timestamp(Date())
        let soon = findings(.credential, in: try await diagnose(expiresAt: now + .seconds(29 * 86_400), now: now))
        #expect(soon.map(\.state) == [.warning])
        let later = findings(.credential, in: try await diagnose(expiresAt: now + .seconds(31 * 86_400), now: now))
        #expect(later.map(\.state) == [.ok])
    }

    @Test(arguments: [("", true), (", removes_headers: true", false)])
    func `a proxy whose role header its clients could send is a warning`(more: String, isWarned: Bool) async throws {
        let http = "http: {proxy: {addresses: [\"127.0.0.1\"], user_header: X-User, role_header: X-Role\(more)}}"
        let found = findings(.configuration, in: try await diagnose(more: http))
        #expect(found.map(\.state) == (isWarned ? [.ok, .warning] : [.ok]), "\(found)")
        let words = "a client that sends X-Role itself has any role, unless the proxy removes X-User and X-Role"
        #expect(found.last?.message.contains(words) == isWarned)
    }

    @Test func `an account of people that no token is yet is a warning`() async throws {
        let people =
            "approvals: {rules: [{above: 1}]}\npeople: {anna: [\"token:#1\", \"token:mac\"], ben: [\"token:#2\"]}"
        let found = findings(.configuration, in: try await diagnose(more: people, token: "mac"))
        #expect(found.map(\.state) == [.ok, .warning])
        #expect(found.last?.message.contains("names token:#2, but no such access token exists") == true, "\(found)")
        let none = findings(.configuration, in: try await diagnose(more: people))
        #expect(none.last?.message.contains("names token:#1, token:#2, token:mac, but") == true, "\(none)")
    }

    @Test func `a folder that pages may write, and this user may not, is a warning`() throws {
        var configuration = Configuration(store: "s", campaigns: "/", templates: "/tmp", apps: [])
        func found(_ isWritable: (String) -> Bool) -> [Finding] {
            FileChecks(configuration, configurationPath: nil, environment: [:]).editing(isWritable: isWritable)
        }
        #expect(found { _ in false }.isEmpty)
        configuration.http.editing = true
        #expect(found { _ in true }.isEmpty)
        let warned = found { $0 == "/tmp" }
        #expect(warned.map(\.state) == [.warning] && warned[0].check == .rights)
        #expect(warned[0].message.contains("cannot write in /,") && warned[0].message.contains("ReadWritePaths="))
    }

    /// No user creates a file in the kernel's own file system.
    @Test func `a file that cannot be written says what the unit needs`() throws {
        let failure = #expect(throws: Failure.self) {
            try AtomicFile.write("a", to: "/sys/fanfare.yaml", expecting: .nothing)
        }
        #expect(
            failure?.messages.joined().contains("name the folder in ReadWritePaths=") == true,
            "\(failure.debugDescription)")
    }

    @Test func `the way to APNs alone being closed has a result of its own`() async throws {
        let closed = Reachability(endpoint: "host:443", isWell: false, summary: "cannot be reached")
        let result = try await diagnose(reach: closed, network: true)
        #expect(findings(.network, in: result).count == 2)
        #expect(result.failure == .unavailable)
        #expect(try await diagnose(reach: closed).failure == nil)
    }
}
