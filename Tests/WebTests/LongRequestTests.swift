import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// A request whose body arrives slowly has, at its end, the rights that its caller has then.
@Suite(.timeLimit(.minutes(10)))
struct LongRequestTests {
    /// A change of a caller's rights.
    enum Change: CaseIterable {
        case revoked, demoted

        func make(_ name: String, in scene: WebScene) async throws {
            let cases = scene.webConsole.cases
            switch self {
            case .revoked: _ = try await cases.access.revoke(name, by: "test", now: cases.now)
            case .demoted:
                _ = try await cases.access.change(name, role: .viewer, topic: nil, by: "test", now: cases.now)
            }
        }
    }

    /// Begins a request of a new token, and returns once its caller is known.
    private static func begun(
        _ scene: WebScene, _ method: String, _ path: String, as role: AccessRole, _ chunk: String
    ) async throws -> RawConnection {
        let cases = scene.webConsole.cases
        let made = try await cases.access.create(
            name: "late", role: role, topic: nil, expiresIn: nil, by: "test", now: cases.now)
        let connection = try RawConnection(port: scene.port)
        try await connection.begin(method, "/api/v1\(path)", token: made.secret, chunk: chunk)
        try await scene.written { try await cases.access.list().contains { $0.name == "late" && $0.lastUsedAt != nil } }
        return connection
    }

    @Test(arguments: Change.allCases)
    func `members that were sent by a caller who has lost the right are not added`(change: Change) async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<4)
            let connection = try await Self.begun(
                scene, "POST", "/segments/vip/members", as: .author, "{\"installation_id\":\"install-0\"}\n")
            try await change.make("late", in: scene)
            try await connection.chunk("{\"installation_id\":\"install-1\"}\n")
            try await connection.endOfChunks()
            let answer = try await connection.receive(until: "send it again")
            #expect(answer.contains(" 403 ") && answer.contains("changed or revoked"), "\(answer)")
            #expect(try await scene.api("GET", "/segments/vip", as: .viewer).status == 404)
        }
    }

    @Test func `a stream of devices ends where its caller has lost the right, and stores no later line`() async throws {
        try await WebScene.with { scene in
            func line(_ number: Int) -> String {
                "{\"token\":\"\(String(repeating: "ab", count: 31))0\(number)\",\"environment\":\"production\","
                    + "\"topic\":\"\(PipelineScene.topic)\",\"installation_id\":\"phone-\(number)\"}\n"
            }
            let connection = try await Self.begun(scene, "POST", "/devices", as: .registrar, line(1))
            #expect(try await connection.receive(until: "inserted").contains("200"))
            try await Change.demoted.make("late", in: scene)
            try await connection.chunk(line(2))
            try await connection.endOfChunks()
            let rest = String(decoding: try await connection.receiveAll(), as: UTF8.self)
            #expect(!rest.contains("inserted") && !rest.contains("done"), "\(rest)")
            #expect(try await scene.store.devices(matching: "phone-1").count == 1)
            #expect(try await scene.store.devices(matching: "phone-2").isEmpty)
        }
    }

    @Test func `a form counts only while its session lasts`() async throws {
        try await WebScene.with { scene in
            let cases = scene.webConsole.cases
            let secret = scene.secrets.session(of: .author)
            // The use of the session is on record, so that the test sees when the request has begun.
            scene.sending.clock.advance(by: .seconds(3600))
            let before = try await cases.access.session(secret, isUse: false, now: cases.now)?.expiresAt
            let form = "do=save&name=vip&topic=\(PipelineScene.topic)&expression=everyone"
            let connection = try RawConnection(port: scene.port)
            try await connection.send(
                "POST /segments HTTP/1.1\r\nHost: localhost\r\nCookie: fanfare=\(secret)\r\n"
                    + "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                    + "Content-Length: \(form.utf8.count)\r\n\r\n\(form.prefix(10))")
            try await scene.written {
                try await cases.access.session(secret, isUse: false, now: cases.now)?.expiresAt != before
            }
            try await Change.revoked.make("author", in: scene)
            try await connection.send(String(form.dropFirst(10)))
            let answer = try await connection.receive(until: "</html>")
            #expect(answer.contains(" 403 ") && answer.contains("changed or revoked"), "\(answer)")
            #expect(try await scene.api("GET", "/segments/vip", as: .viewer).status == 404)
        }
    }
}
