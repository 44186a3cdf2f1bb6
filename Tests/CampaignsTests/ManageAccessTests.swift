import Campaigns
import Foundation
import Model
import SQLiteStore
import Store
import Synchronization
import Testing

/// Who may ask, from the making of an access token to the end of a session.
@Suite(.timeLimit(.minutes(10)))
struct ManageAccessTests {
    private static let noon = Timestamp(milliseconds: 1_800_000_000_000)

    private static func withAccess(_ body: (ManageAccess, SQLiteFileStore) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "fanfare-access-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
        try await body(ManageAccess(store: store), store)
        try store.close()
    }

    private static func make(
        _ access: ManageAccess, _ name: String = "anna", expiresIn: Duration? = nil
    ) async throws -> (token: AccessToken, secret: String) {
        try await access.create(
            name: name, role: .sender, topic: nil, expiresIn: expiresIn, by: "amy", now: noon)
    }

    @Test func `a secret opens what it was made for until it is revoked, and is nowhere in the store`() async throws {
        try await Self.withAccess { access, store in
            let (token, secret) = try await Self.make(access)
            let other = try await Self.make(access, "ben").secret
            #expect(secret != other && secret.hasPrefix("fanfare_") && secret.count == 51)
            #expect(try await access.authenticate(secret, now: Self.noon)?.id == token.id)
            #expect(try await access.authenticate(secret + "x", now: Self.noon) == nil)
            #expect(try await access.authenticate(String(secret.dropLast()) + "é", now: Self.noon) == nil)
            let session = try await access.signIn(token, by: "anna", now: Self.noon)
            let files = ["", "-wal"].compactMap { FileManager.default.contents(atPath: store.path + $0) }
            #expect(!files.isEmpty)
            for text in [secret, session, String(secret.dropFirst(8))] {
                #expect(files.allSatisfy { $0.range(of: Data(text.utf8)) == nil })
            }
            _ = try await access.revoke("anna", by: "amy", now: Self.noon)
            #expect(try await access.authenticate(secret, now: Self.noon) == nil)
            #expect(try await access.session(session, now: Self.noon) == nil)
            await #expect(throws: Failure.self) { try await access.signIn(token, by: "anna", now: Self.noon) }
        }
    }

    @Test func `while the store is away whoever was let in today may still ask for a stop`() async throws {
        try await Self.withAccess { access, store in
            let log = LeavingLog(store)
            let (token, secret) = try await Self.make(access)
            let session = try await access.signIn(token, by: "anna", now: Self.noon)
            let other = ManageAccess(store: log)
            #expect(try await other.authenticate(secret, now: Self.noon) != nil)
            #expect(try await other.session(session, now: Self.noon) != nil)
            log.isAway.withLock { $0 = true }
            let later = Self.noon + .seconds(3600)
            #expect(try await other.authenticate(secret, now: later)?.id == token.id)
            #expect(try await other.session(session, now: later)?.name == "anna")
            for moment in [Self.noon + .seconds(12 * 3600), Self.noon - .seconds(1)] {
                await #expect(throws: StoreError.self) { try await other.authenticate(secret, now: moment) }
                await #expect(throws: StoreError.self) { try await other.session(session, now: moment) }
            }
            // Nobody who was never let in, nor who has signed out.
            await #expect(throws: StoreError.self) { try await ManageAccess(store: log).session(session, now: later) }
            await #expect(throws: StoreError.self) { try await other.signOut(session) }
            await #expect(throws: StoreError.self) { try await other.session(session, now: later) }
            log.isAway.withLock { $0 = false }
            _ = try await access.revoke("anna", by: "amy", now: later)
            #expect(try await other.authenticate(secret, now: later) == nil)
            log.isAway.withLock { $0 = true }
            await #expect(throws: StoreError.self) { try await other.authenticate(secret, now: later) }
        }
    }

    @Test func `a token that another process revoked is good for no more than a second`() async throws {
        try await Self.withAccess { access, store in
            let secret = try await Self.make(access).secret
            let elsewhere = ManageAccess(store: store)
            #expect(try await access.authenticate(secret, now: Self.noon) != nil)
            _ = try await elsewhere.revoke("anna", by: "amy", now: Self.noon)
            #expect(try await access.authenticate(secret, now: Self.noon + .seconds(1)) == nil)
            #expect(try await access.authenticate(secret, now: Self.noon - .seconds(3600)) == nil)
        }
    }

    @Test func `a token that was good a moment ago is not looked up for each of a thousand requests`() async throws {
        try await Self.withAccess { access, store in
            let secret = try await Self.make(access).secret
            #expect(try await access.authenticate(secret, now: Self.noon) != nil)
            // Whoever does not know of it proves that the store was not asked.
            _ = try await ManageAccess(store: store).revoke("anna", by: "amy", now: Self.noon)
            #expect(try await access.authenticate(secret, now: Self.noon + .milliseconds(999)) != nil)
        }
    }

    @Test func `a secret whose token has ended opens nothing`() async throws {
        try await Self.withAccess { access, _ in
            let (token, secret) = try await Self.make(access, expiresIn: .seconds(3600))
            let session = try await access.signIn(token, by: "anna", now: Self.noon)
            let end = Self.noon + .seconds(3600)
            #expect(try await access.session(session, now: end - .seconds(1)) != nil)
            #expect(try await access.authenticate(secret, now: end - .seconds(1)) != nil)
            #expect(try await access.session(session, now: end) == nil)
            #expect(try await access.authenticate(secret, now: end) == nil)
            #expect(try await access.hasTokens())
        }
    }

    @Test func `that a token was used is written at most every five minutes`() async throws {
        try await Self.withAccess { access, _ in
            let secret = try await Self.make(access).secret
            var seen: [Timestamp?] = []
            for seconds in [0, 299, 300] {
                _ = try await access.authenticate(secret, now: Self.noon + .seconds(seconds))
                seen.append(try await access.list()[0].lastUsedAt)
            }
            #expect(seen == [Self.noon, Self.noon, Self.noon + .seconds(300)])
        }
    }

    @Test func `a session lives twelve hours from its last use, and thirty days in all`() async throws {
        try await Self.withAccess { access, _ in
            let made = try await access.create(
                name: "ben", role: .viewer, topic: nil, expiresIn: nil, by: "amy", now: Self.noon
            ).token
            let secret = try await access.signIn(made, by: "ben", now: Self.noon)
            let hours: (Int) -> Timestamp = { Self.noon + .seconds($0 * 3600) }
            #expect(try await access.session(secret, now: hours(12)) == nil)
            for hour in stride(from: 11, to: 30 * 24, by: 11) {
                let session = try await access.session(secret, now: hours(hour))
                #expect(session?.name == "ben" && session?.role == .viewer && session?.token == made.id, "\(hour)")
            }
            #expect(try await access.session(secret, now: hours(30 * 24)) == nil)
            let other = try await access.signIn(made, by: "ben", now: Self.noon)
            try await access.signOut(other)
            #expect(try await access.session(other, now: Self.noon) == nil)
        }
    }

    @Test(arguments: [
        "", "7", "7up", "an na", "a\nb", String(repeating: "a", count: 65), "a;b", "terminal", "Terminal-1", "daemon",
        "\u{E9}lise", "e\u{301}lise", "\u{430}nna", "anna\u{200B}",
    ])
    func `a name that could be taken for something else is refused`(name: String) async throws {
        try await Self.withAccess { access, _ in
            await #expect(throws: Failure.self) { try await Self.make(access, name) }
            let made = try await access.list()
            #expect(made.isEmpty)
        }
    }

    @Test func `what people promise to a person is not given to a token that an admin creates`() async throws {
        try await Self.withAccess { console, store in
            let anna = try await Self.make(console, "anna").token
            let people = ConfiguredPeople([
                "anna": ["token:#\(anna.id)", "token:anna-mac"], "ben": ["token:#\(anna.id + 2)"],
            ])
            func admin(_ people: ConfiguredPeople) -> ManageAccess { ManageAccess(store: store, people: people) }
            let promised = ConfiguredPeople(["anna": ["token:anna-mac"]])
            let named = await #expect(throws: Failure.self) { try await Self.make(admin(promised), "anna-mac") }
            #expect(named?.messages.first?.contains("assigns that name to anna") == true)
            // Also a token of another name could get the id.
            let numbered = await #expect(throws: Failure.self) { try await Self.make(admin(people), "carl") }
            #expect(numbered?.messages.first?.contains("names token:#\(anna.id + 2), which does not exist") == true)
            #expect(try await console.list().map(\.name) == ["anna"])
            // The operator gives both; from then on the name and the id are taken.
            for name in ["anna-mac", "ben"] { _ = try await Self.make(console, name) }
            #expect(try await Self.make(admin(people), "carl").token.name == "carl")
            await #expect(throws: (any Error).self) { try await Self.make(admin(people), "anna-mac") }
        }
    }

    @Test func `an invitation that is used up gives its token, also if no session can begin`() async throws {
        try await Self.withAccess { access, store in
            let log = LeavingLog(store)
            log.leavesAfterAcceptance.withLock { $0 = true }
            let (_, secret) = try await access.invite(
                name: "anna", role: .viewer, topic: nil, by: "amy", now: Self.noon)
            let joined = try #require(
                try await ManageAccess(store: log).join(secret, now: Self.noon) { Actor($0.name) })
            #expect(joined.session == nil)
            #expect(try await access.authenticate(joined.secret, now: Self.noon)?.name == "anna")
        }
    }

    @Test func `a secret pasted into a reason is cut out of it`() async throws {
        // Zeros and ones alone would not look mixed, and dashes part letters.
        for bytes in [[UInt8](repeating: 0xFB, count: 32), [UInt8](repeating: 0, count: 32), Array(0..<32)] {
            let secret = AccessSecret.text(bytes)
            let text = Redaction.withoutTokens("wrong link, see \(secret) there")
            #expect(text == "wrong link, see …\(secret.suffix(8)) there")
        }
        let name = "fanfare_backup_2026-11-22.sqlite"
        #expect(Redaction.withoutTokens(name) == name)
    }
}

/// A store that cannot be asked for a while.
private final class LeavingLog: AccessLog {
    let isAway = Mutex(false)
    let leavesAfterAcceptance = Mutex(false)
    private let store: any AccessLog

    init(_ store: any AccessLog) { self.store = store }

    private func asked() throws -> any AccessLog {
        if isAway.withLock({ $0 }) { throw StoreError.inputOutput(path: "store", what: "away") }
        return store
    }

    func createAccessToken(_ token: AccessToken, secretHash: String, by actor: Actor) async throws -> AccessToken {
        try await asked().createAccessToken(token, secretHash: secretHash, by: actor)
    }
    func accessTokens() async throws -> [AccessToken] { try await asked().accessTokens() }
    func accessToken(secretHash: String) async throws -> AccessToken? {
        try await asked().accessToken(secretHash: secretHash)
    }
    func hasAccessTokens() async throws -> Bool { try await asked().hasAccessTokens() }
    func revokeAccessToken(
        _ text: String, keepsAdmin: Bool, by actor: Actor, now: Timestamp
    ) async throws -> AccessToken {
        try await asked().revokeAccessToken(text, keepsAdmin: keepsAdmin, by: actor, now: now)
    }
    func changeAccessToken(
        _ text: String, role: AccessRole, topic: String?, by actor: Actor, now: Timestamp
    ) async throws -> AccessToken {
        try await asked().changeAccessToken(text, role: role, topic: topic, by: actor, now: now)
    }
    func invite(_ invitation: AccessToken, secretHash: String, by actor: Actor) async throws -> AccessToken {
        try await asked().invite(invitation, secretHash: secretHash, by: actor)
    }
    func acceptInvitation(
        secretHash: String, newHash: String, by actor: Actor, now: Timestamp
    ) async throws -> AccessToken? {
        let accepted = try await asked().acceptInvitation(
            secretHash: secretHash, newHash: newHash, by: actor, now: now)
        if leavesAfterAcceptance.withLock({ $0 }) { isAway.withLock { $0 = true } }
        return accepted
    }
    func markAccessTokenUsed(_ id: Int64, now: Timestamp) async throws {
        try await asked().markAccessTokenUsed(id, now: now)
    }
    func createSession(_ session: WebSession, secretHash: String, by actor: Actor) async throws -> Bool {
        try await asked().createSession(session, secretHash: secretHash, by: actor)
    }
    func session(secretHash: String) async throws -> WebSession? { try await asked().session(secretHash: secretHash) }
    func extendSession(secretHash: String, to moment: Timestamp) async throws {
        try await asked().extendSession(secretHash: secretHash, to: moment)
    }
    func removeSession(secretHash: String) async throws { try await asked().removeSession(secretHash: secretHash) }
    func removeExpiredSessions(now: Timestamp) async throws -> Int { try await asked().removeExpiredSessions(now: now) }
}
