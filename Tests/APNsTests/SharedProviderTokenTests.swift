import Synchronization
import TestSupport
import Testing
import TransportContract

@testable import APNs

/// One provider token for several processes, each played by a source of its own.
@Suite(.timeLimit(.minutes(10)))
struct SharedProviderTokenTests {
    let directory: TemporaryDirectory
    let key: SigningKey
    let time = ManualTime()
    let record = RecordInMemory()

    init() throws {
        directory = try TemporaryDirectory()
        try OpenSSLCommand.makeSigningKey(at: directory.file("key.p8"))
        key = try SigningKey(path: directory.file("key.p8"))
    }

    private func process(
        boot: String = "boot", jitter: Double = 0, uptimeAhead: Duration = .zero,
        sleep: @escaping @Sendable (Duration) async -> Void = ProviderTokenClock.sleep
    ) -> ProviderTokenSource {
        let uptime = time.uptime
        return ProviderTokenSource(
            key: key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG",
            clock: ProviderTokenClock(
                now: time.now, uptime: { uptime() + uptimeAhead }, bootID: boot, sleep: sleep),
            sharing: record, jitter: { jitter })
    }

    private func token(of source: ProviderTokenSource) async throws -> String {
        await source.prepare()
        return try source.authorization().text
    }

    /// A process whose sleeps are reported, and end one by one when the test says so.
    private func sleepingProcess() -> (ProviderTokenSource, AsyncStream<Duration>, AsyncStream<Void>.Continuation) {
        let (sleeps, sleep) = AsyncStream.makeStream(of: Duration.self)
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self)
        let source = process { duration in
            sleep.yield(duration)
            for await _ in wakes { break }
        }
        return (source, sleeps, wake)
    }

    /// As the keeper does when its time has come, or it was asked to.
    private func renew(_ source: ProviderTokenSource) async { await source.renewOnce() }

    @Test func `every process sends with the token that the first one signed`() async throws {
        let first = try await token(of: process())
        time.advance(by: .seconds(30 * 60))
        for _ in 0..<5 { #expect(try await token(of: process()) == first) }
        #expect(record.tokens.count == 1)
    }

    @Test func `many that begin at once agree on one token`() async throws {
        let processes = (0..<16).map { _ in process() }
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for process in processes { group.addTask { try await token(of: process) } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(tokens.count == 1)
    }

    @Test func `one renews, the others read the new token when theirs is due`() async throws {
        let early = process(jitter: -1)
        let late = process(jitter: 1)
        let first = try await token(of: early)
        #expect(try await token(of: late) == first)
        time.advance(by: .seconds(41 * 60))
        await renew(early)
        let second = try early.authorization().text
        #expect(second != first)
        #expect(try late.authorization().text == first)
        time.advance(by: .seconds(10 * 60))
        await renew(late)
        #expect(try late.authorization().text == second)
        #expect(record.tokens.count == 2)
    }

    @Test func `a lane never waits for a renewal that is due, only for a token that is of use`() async throws {
        let source = process { _ in for await _ in AsyncStream.makeStream(of: Never.self).stream {} }
        try await source.keepFresh {
            let first = try source.authorization().text
            time.advance(by: .seconds(50 * 60))
            #expect(try source.authorization().text == first)
            record.isBusy = true
            time.advance(by: .seconds(8 * 60))
            #expect(throws: CredentialError.renewalPending) { try source.authorization() }
            time.advance(by: ProviderTokenSource.patience)
            #expect(try source.authorization().text != first)
        }
    }

    @Test func `a token is renewed ahead of time, and at once when it is asked for`() async throws {
        let (source, sleeps, wake) = sleepingProcess()
        try await source.keepFresh {
            let first = try source.authorization().text
            var sleeping = sleeps.makeAsyncIterator()
            #expect(await sleeping.next() == ProviderTokenSource.renewalAge)
            time.advance(by: ProviderTokenSource.renewalAge)
            wake.yield()
            await record.until { $0 == 2 }
            time.advance(by: .seconds(30 * 60))
            source.markExpired(2)
            await record.until { $0 == 3 }
            await source.renewOnce()
            #expect(try source.authorization().text != first)
        }
    }

    @Test func `while the store is locked the token in use goes on until it is too old`() async throws {
        let source = process()
        let first = try await token(of: source)
        record.isBusy = true
        time.advance(by: .seconds(57 * 60))
        await renew(source)
        #expect(try source.authorization().text == first)
        time.advance(by: .seconds(60))
        await renew(source)
        let alone = try source.authorization().text
        #expect(alone != first)
        #expect(record.tokens.count == 1)
        // Once the store is there again, the others are to send with it, too.
        record.isBusy = false
        await renew(source)
        #expect(try source.authorization().text == alone)
        #expect(try await token(of: process()) == alone)
    }

    @Test func `a cancelled renewal is no failure of the shared record`() async throws {
        struct CancelledRecord: ProviderTokenSharing {
            func current() async throws -> SharedProviderToken? { throw CancellationError() }
            func replace(
                _ known: SharedProviderToken?, with new: SharedProviderToken
            ) async throws -> SharedProviderToken {
                throw CancellationError()
            }
        }
        let source = ProviderTokenSource(
            key: key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG",
            clock: ProviderTokenClock(
                now: time.now, uptime: time.uptime, bootID: "boot", sleep: ProviderTokenClock.sleep),
            sharing: CancelledRecord(), jitter: { 0 })
        await renew(source)
        // The next caller waits for the shared token, and signs none alone.
        source.state.withLock { #expect(!$0.isFailing && $0.waitingSince == nil) }
    }

    @Test func `where another token was agreed on meanwhile, ours serves until it is due`() async throws {
        record.isBusy = true
        let source = process()
        let alone = try await token(of: source)
        record.isBusy = false
        let other = process()
        let shared = try await token(of: other)
        #expect(shared != alone)
        await renew(source)
        #expect(try source.authorization().text == alone)
        time.advance(by: .seconds(46 * 60))
        await renew(other)
        await renew(source)
        #expect(try source.authorization().text == (try other.authorization().text))
    }

    @Test func `too many updates hold the renewal of every process`() async throws {
        let (left, right) = (process(), process())
        let first = try await token(of: left)
        #expect(try await token(of: right) == first)
        time.advance(by: .seconds(36 * 60))
        #expect(left.holdRenewal())
        #expect(!left.holdRenewal())
        await renew(left)
        time.advance(by: .seconds(18 * 60))
        await renew(right)
        #expect(try right.authorization().text == first)
        #expect(try await token(of: process()) == first)
        time.advance(by: .seconds(2 * 60))
        await renew(right)
        #expect(try right.authorization().text != first)
        #expect(record.tokens.count == 2)
    }

    @Test func `a held renewal that the store refuses is tried again after a pause`() async throws {
        let (source, sleeps, wake) = sleepingProcess()
        try await source.keepFresh {
            _ = try source.authorization()
            var sleeping = sleeps.makeAsyncIterator()
            #expect(await sleeping.next() == ProviderTokenSource.renewalAge)
            time.advance(by: .seconds(50 * 60))
            #expect(source.holdRenewal())
            record.isBusy = true
            time.advance(by: .seconds(9 * 60))
            for _ in 0..<3 {
                wake.yield()
                let pause = await sleeping.next() ?? .zero
                #expect(pause > .zero, "it asks the store without a pause")
            }
        }
    }

    @Test func `an expired token is replaced once, whoever hears of it`() async throws {
        let processes = (0..<3).map { _ in process() }
        for source in processes { _ = try await token(of: source) }
        time.advance(by: .seconds(30 * 60))
        for source in processes {
            source.markExpired(1)
            await renew(source)
        }
        #expect(Set(try processes.map { try $0.authorization().text }).count == 1)
        #expect(record.tokens.count == 2)
    }

    @Test func `a fresh token that APNs calls expired is not replaced by any process: the clock is wrong`() async throws
    {
        let source = process()
        _ = try await token(of: source)
        time.advance(by: .seconds(10))
        source.markExpired(1)
        await source.prepare()
        #expect(throws: CredentialError.clockWrong(tokenAgeSeconds: 10)) { try source.authorization() }
        let next = process()
        _ = try await token(of: next)
        next.markExpired(1)
        #expect(throws: CredentialError.clockWrong(tokenAgeSeconds: 10)) { try next.authorization() }
        #expect(record.tokens.count == 1)
    }

    @Test(arguments: [3 * 3600, 55 * 60])
    func `a wall clock that is set forward ages no token of this boot`(seconds: Int) async throws {
        let first = try await token(of: process())
        time.advance(by: .seconds(60))
        time.setWall(by: .seconds(seconds))
        for _ in 0..<3 { #expect(try await token(of: process()) == first) }
        #expect(record.tokens.count == 1)
    }

    /// APNs refuses one from the future: by this clock the old one is, and it is replaced once and not in a loop.
    @Test func `a wall clock that is set back costs one token`() async throws {
        let first = try await token(of: process())
        time.advance(by: .seconds(60))
        time.setWall(by: .seconds(-3600))
        let second = try await token(of: process())
        #expect(second != first)
        for _ in 0..<3 { #expect(try await token(of: process()) == second) }
        #expect(record.tokens.count == 2)
    }

    @Test func `after another start of the machine the wall clock tells the age`() async throws {
        let first = try await token(of: process())
        time.advance(by: .seconds(20 * 60))
        // Up for longer than the token is old, and for less.
        for ahead in [Duration.seconds(86_400), .seconds(-1200)] {
            #expect(try await token(of: process(boot: "another", uptimeAhead: ahead)) == first)
        }
        time.advance(by: .seconds(30 * 60))
        #expect(try await token(of: process(boot: "another", uptimeAhead: .seconds(-3000))) != first)
    }

    @Test func `the same key has the same fingerprint from whatever file, another one another`() throws {
        try OpenSSLCommand.run(
            "ec", "-in", directory.file("key.p8"), "-out", directory.file("sec1.pem"))
        try OpenSSLCommand.makeSigningKey(at: directory.file("other.p8"))
        let fingerprint = try key.fingerprint()
        #expect(fingerprint.utf8.count == 64)
        #expect(try SigningKey(path: directory.file("sec1.pem")).fingerprint() == fingerprint)
        #expect(try SigningKey(path: directory.file("other.p8")).fingerprint() != fingerprint)
    }
}
