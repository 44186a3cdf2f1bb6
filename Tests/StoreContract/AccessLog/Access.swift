import Model
import Store
import Testing

extension AccessLogContract {
    private static func hash(_ number: Int) -> String { String(repeating: "0", count: 63) + "\(number)" }

    private static func token(_ name: String, topic: String? = nil, expiresAt: Timestamp? = nil) -> AccessToken {
        AccessToken(
            id: 0, name: name, role: .sender, topic: topic, createdAt: noon, createdBy: "amy", expiresAt: expiresAt,
            revokedAt: nil, lastUsedAt: nil)
    }

    private static func session(_ token: AccessToken?, at now: Timestamp = noon) -> WebSession {
        WebSession(
            name: token?.name ?? "ben", role: .sender, topic: token?.topic, token: token?.id, createdAt: now,
            expiresAt: now + .seconds(60), endsAt: now + .seconds(100))
    }

    private static func requireTaken(_ store: any AllRoles, _ name: String) async {
        await #expect(throws: StoreError.accessTokenExists(name: name)) {
            _ = try await store.createAccessToken(token(name), secretHash: hash(2), by: "amy")
        }
    }

    @PromiseList static var accessTokens: [Promise] {
        Promise("an access token is found by the hash of its secret, and by no other") { store in
            #expect(try await store.hasAccessTokens() == false)
            let made = try await store.createAccessToken(
                token("anna", topic: wendercast, expiresAt: noon + .seconds(9)), secretHash: hash(1), by: "amy")
            #expect(made.id > 0 && made.topic == wendercast && made.expiresAt == noon + .seconds(9))
            #expect(try await store.accessToken(secretHash: hash(1)) == made)
            #expect(try await store.accessToken(secretHash: hash(2)) == nil)
            #expect(try await store.accessTokens() == [made])
            #expect(try await store.hasAccessTokens())
        }
        Promise("a name belongs to one access token for ever") { store in
            let anna = try await store.createAccessToken(token("anna"), secretHash: hash(1), by: "amy")
            _ = try await store.createAccessToken(token("ben", expiresAt: noon), secretHash: hash(3), by: "amy")
            await requireTaken(store, "anna")
            _ = try await store.revokeAccessToken("\(anna.id)", keepsAdmin: false, by: "amy", now: noon)
            await requireTaken(store, "anna")
            await requireTaken(store, "ben")
            #expect(try await store.accessToken(secretHash: hash(2)) == nil)
            #expect(try await store.accessTokens().map(\.name) == ["anna", "ben"])
        }
        Promise("a token's id tells its name for ever, but for the token of a sign-in link") { store in
            let anna = try await store.createAccessToken(token("anna"), secretHash: hash(1), by: "amy")
            let link = try await store.createAccessToken(
                token(AccessToken.linkPrefix + "1"), secretHash: hash(2), by: "amy")
            _ = try await store.revokeAccessToken("\(anna.id)", keepsAdmin: false, by: "amy", now: noon)
            #expect(try await store.tokenNames(of: [anna.id, link.id, link.id + 1]) == [anna.id: "anna"])
            #expect(try await store.tokenNames(of: []) == [:])
        }
        Promise("the token of a sign-in link is none that a person made") { store in
            _ = try await store.createAccessToken(
                token(AccessToken.linkPrefix + "1"), secretHash: hash(1), by: "amy")
            #expect(try await store.hasAccessTokens() == false)
            _ = try await store.createAccessToken(token("terminal"), secretHash: hash(2), by: "amy")
            #expect(try await store.hasAccessTokens())
        }
        Promise("a revoked access token stays on record, and every change of one is in the audit") { store in
            let first = try await store.createAccessToken(token("anna"), secretHash: hash(1), by: "amy")
            let later = noon + .seconds(1)
            let revoked = try await store.revokeAccessToken("\(first.id)", keepsAdmin: false, by: "ben", now: later)
            #expect(revoked.revokedAt == later && !revoked.isGood(at: later))
            let again = try await store.revokeAccessToken(
                "\(first.id)", keepsAdmin: false, by: "ben", now: noon + .seconds(2))
            #expect(again == revoked)
            #expect(try await store.accessToken(secretHash: hash(1)) == revoked)
            #expect(try await store.hasAccessTokens() == false)
            await #expect(throws: StoreError.noSuchAccessToken("anna")) {
                _ = try await store.revokeAccessToken("anna", keepsAdmin: false, by: "ben", now: noon)
            }
            let events = try await store.events(run: nil, since: nil, limit: 9)
            #expect(events.map(\.kind) == ["token_created", "token_revoked"])
            #expect(events.map(\.actor.name) == ["amy", "ben"] && events[0].detail == "anna: sender")
        }
        Promise("when an access token was used last never goes back") { store in
            let made = try await store.createAccessToken(token("anna"), secretHash: hash(1), by: "amy")
            for seconds in [5, 3] { try await store.markAccessTokenUsed(made.id, now: noon + .seconds(seconds)) }
            #expect(try await store.accessTokens().map(\.lastUsedAt) == [noon + .seconds(5)])
        }
    }

    private static func admin(_ name: String, topic: String? = nil, expiresAt: Timestamp? = nil) -> AccessToken {
        var made = token(name, topic: topic, expiresAt: expiresAt)
        made.role = .admin
        return made
    }

    private static func invitation(_ name: String) -> AccessToken {
        var made = token(name, topic: wendercast, expiresAt: noon + .seconds(9))
        made.isInvitation = true
        return made
    }

    @PromiseList static var people: [Promise] {
        Promise("an invitation is no token, and is accepted once, before it ends") { store in
            let made = try await store.invite(invitation("anna"), secretHash: hash(1), by: "amy")
            #expect(try await store.accessToken(secretHash: hash(1)) == made)
            #expect(!made.isGood(at: noon) && made.isOpenInvitation(at: noon))
            #expect(try await store.hasAccessTokens() == false)
            #expect(try await store.createSession(session(made), secretHash: hash(5), by: "x") == false)
            let late = noon + .seconds(9)
            #expect(
                try await store.acceptInvitation(secretHash: hash(1), newHash: hash(2), by: "anna", now: late) == nil)
            let joined = try #require(
                try await store.acceptInvitation(secretHash: hash(1), newHash: hash(2), by: "anna", now: noon))
            #expect(joined.id == made.id && joined.isGood(at: noon + .seconds(99)) && joined.topic == wendercast)
            #expect(try await store.accessToken(secretHash: hash(2)) == joined)
            #expect(try await store.accessToken(secretHash: hash(1)) == nil)
            for secret in [hash(1), hash(2)] {
                #expect(
                    try await store.acceptInvitation(secretHash: secret, newHash: hash(3), by: "x", now: noon) == nil)
            }
            #expect(try await store.hasAccessTokens())
            let events = try await store.events(run: nil, since: nil, limit: 9)
            #expect(events.map(\.kind) == ["person_invited", "person_joined"])
            #expect(events.map(\.actor.name) == ["amy", "anna"])
        }
        Promise("a later invitation replaces one that was not accepted, and no token") { store in
            let first = try await store.invite(invitation("anna"), secretHash: hash(1), by: "amy")
            _ = try await store.revokeAccessToken("anna", keepsAdmin: true, by: "amy", now: noon)
            #expect(
                try await store.acceptInvitation(secretHash: hash(1), newHash: hash(9), by: "x", now: noon) == nil)
            let second = try await store.invite(invitation("anna"), secretHash: hash(2), by: "amy")
            #expect(second.id == first.id && second.revokedAt == nil)
            #expect(try await store.accessToken(secretHash: hash(1)) == nil)
            _ = try await store.acceptInvitation(secretHash: hash(2), newHash: hash(3), by: "anna", now: noon)
            await #expect(throws: StoreError.accessTokenExists(name: "anna")) {
                _ = try await store.invite(invitation("anna"), secretHash: hash(4), by: "amy")
            }
            await requireTaken(store, "anna")
        }
        Promise("a changed role and app hold for the token and its sessions") { store in
            let anna = try await store.createAccessToken(token("anna"), secretHash: hash(1), by: "amy")
            #expect(try await store.createSession(session(anna), secretHash: hash(2), by: "x"))
            let changed = try await store.changeAccessToken(
                "anna", role: .viewer, topic: wendercast, by: "amy", now: noon)
            #expect(changed.role == .viewer && changed.topic == wendercast)
            #expect(try await store.accessToken(secretHash: hash(1)) == changed)
            let found = try await store.session(secretHash: hash(2))
            #expect(found?.role == .viewer && found?.topic == wendercast)
            let kinds = try await store.events(run: nil, since: nil, limit: 9).map(\.kind)
            #expect(kinds == ["token_created", "signed_in", "token_changed"])
            // A sign-in that read the token before the change.
            #expect(try await store.createSession(session(anna), secretHash: hash(3), by: "x"))
            let late = try await store.session(secretHash: hash(3))
            #expect(late?.role == .viewer && late?.topic == wendercast)
            for name in ["ben", "99"] {
                await #expect(throws: StoreError.noSuchAccessToken(name)) {
                    _ = try await store.changeAccessToken(name, role: .viewer, topic: nil, by: "amy", now: noon)
                }
            }
        }
        Promise("the last admin of all apps keeps the access") { store in
            _ = try await store.createAccessToken(admin("anna"), secretHash: hash(1), by: "amy")
            // None of these could manage people: of one app, about to end, of a link, and a mere invitation.
            _ = try await store.createAccessToken(admin("ben", topic: wendercast), secretHash: hash(2), by: "amy")
            _ = try await store.createAccessToken(
                admin("cem", expiresAt: noon + .seconds(3600)), secretHash: hash(3), by: "amy")
            _ = try await store.createAccessToken(
                admin(AccessToken.linkPrefix + "1"), secretHash: hash(4), by: "amy")
            var invited = admin("dora", expiresAt: noon + .seconds(9))
            invited.isInvitation = true
            _ = try await store.invite(invited, secretHash: hash(5), by: "amy")
            await #expect(throws: StoreError.lastAdmin(name: "anna")) {
                _ = try await store.revokeAccessToken("anna", keepsAdmin: true, by: "amy", now: noon)
            }
            for (role, topic) in [(AccessRole.viewer, nil), (.admin, wendercast)] {
                await #expect(throws: StoreError.lastAdmin(name: "anna")) {
                    _ = try await store.changeAccessToken("anna", role: role, topic: topic, by: "amy", now: noon)
                }
            }
            _ = try await store.changeAccessToken("ben", role: .admin, topic: nil, by: "amy", now: noon)
            _ = try await store.changeAccessToken("anna", role: .viewer, topic: nil, by: "amy", now: noon)
            _ = try await store.revokeAccessToken("ben", keepsAdmin: false, by: "amy", now: noon)
        }
    }

    @PromiseList static var sessions: [Promise] {
        Promise("a session is kept alive by use, to its end at most") { store in
            #expect(try await store.createSession(session(nil), secretHash: hash(1), by: "ben"))
            #expect(try await store.session(secretHash: hash(1)) == session(nil))
            #expect(try await store.session(secretHash: hash(2)) == nil)
            try await store.extendSession(secretHash: hash(1), to: noon + .seconds(90))
            #expect(try await store.session(secretHash: hash(1))?.expiresAt == noon + .seconds(90))
            try await store.extendSession(secretHash: hash(1), to: noon + .seconds(900))
            #expect(try await store.session(secretHash: hash(1))?.expiresAt == noon + .seconds(100))
            let events = try await store.events(run: nil, since: nil, limit: 9)
            #expect(events.map(\.kind) == ["signed_in"] && events[0].actor.name == "ben")
        }
        Promise("revoking an access token ends its sessions and no others, and nobody signs in with it again") {
            store in
            let anna = try await store.createAccessToken(token("anna"), secretHash: hash(1), by: "amy")
            let ben = try await store.createAccessToken(token("ben"), secretHash: hash(2), by: "amy")
            for (number, holder) in [(3, anna), (4, ben)] {
                #expect(try await store.createSession(session(holder), secretHash: hash(number), by: "x"))
            }
            _ = try await store.revokeAccessToken("anna", keepsAdmin: false, by: "amy", now: noon)
            #expect(try await store.session(secretHash: hash(3)) == nil)
            #expect(try await store.session(secretHash: hash(4)) == session(ben))
            #expect(try await store.createSession(session(anna), secretHash: hash(5), by: "x") == false)
            #expect(try await store.session(secretHash: hash(5)) == nil)
        }
        Promise("nobody signs in with an access token that has ended") { store in
            let made = try await store.createAccessToken(
                token("anna", expiresAt: noon + .seconds(9)), secretHash: hash(1), by: "amy")
            let late = session(made, at: noon + .seconds(9))
            #expect(try await store.createSession(late, secretHash: hash(2), by: "x") == false)
        }
        Promise("sessions that are over are removed, and one that is signed out") { store in
            for number in 1...3 {
                let start = noon + .seconds(number)
                #expect(try await store.createSession(session(nil, at: start), secretHash: hash(number), by: "x"))
            }
            #expect(try await store.removeExpiredSessions(now: noon + .seconds(61)) == 1)
            #expect(try await store.session(secretHash: hash(1)) == nil)
            try await store.removeSession(secretHash: hash(2))
            #expect(try await store.session(secretHash: hash(2)) == nil)
            #expect(try await store.session(secretHash: hash(3)) != nil)
        }
    }
}
