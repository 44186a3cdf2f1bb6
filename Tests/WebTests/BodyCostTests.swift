import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Store
import TestSupport
import Testing

@testable import Web

/// Bodies of requests cost no more than their size allows, and answers do not grow with them.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct BodyCostTests {
    private struct Sample: Codable {
        var name: String
        var count: Int?
        var list: [String]?
        var map: [String: String]?
    }

    private func read(_ text: String) -> Problem? {
        do {
            _ = try JSONBody.value(Sample.self, from: Data(text.utf8))
            return nil
        } catch {
            return Problem(error)
        }
    }

    @Test func `a JSON body`() {
        let fragments = [
            "{", "}", "[", "]", "{}", "\"a\": ", "\"", "\\u0041", "\\", ",", "1", "-1.5e3", "true", "null", " ", "\n",
            "é", "[[",
            "]]", "\"name\": \"x\"", "\"list\": [",
        ]
        for unit in ["{},", "[],", "1,", "\"x\",", "true,", "[[1],[2]],"] {
            #expect(LinearCost.fault(of: .init(unit, head: "[", tail: "1]"), upTo: 256 << 10) { _ = read($0) } == nil)
            #expect(
                LinearCost.fault(of: .init(unit, head: "{\"list\": [", tail: "1]}"), upTo: 256 << 10) { _ = read($0) }
                    == nil)
        }
        LinearCost.seeds { seed in
            for (head, tail) in [("", ""), ("{\"list\": [", "]}"), ("[[[", "]]]")] {
                let pattern = LinearCost.Pattern(of: fragments, seed: seed, head: head, tail: tail)
                #expect(LinearCost.fault(of: pattern) { _ = read($0) } == nil)
            }
        }
    }

    @Test func `texts of requests and pages`() {
        let signs = [
            "<", "&", "\"", "'", "x", "\u{0600}", "\u{FE0F}", "é", "\n", "\r\n", "%41", "+", "=", "/", "\\", "~",
        ]
        LinearCost.seeds { seed in
            let pattern = LinearCost.Pattern(of: signs, seed: seed)
            #expect(
                LinearCost.fault(of: pattern) { text in
                    _ = text.escapedHTML
                    _ = text.inAddress
                    _ = text.shownShort
                    _ = PageRequest.ownAddress("/" + text)
                    _ = FileEditor.Conflict("", yours: text, theirs: text + "x")
                    _ = OccurrenceName.problem(with: text)
                    _ = AccessSecret.isPlausible(text)
                } == nil)
        }
        let sql = ["SELECT ", "'", "\"", "--", "/*", "*/", ";", "$$", "x", "(", ")", ":", "U&", "\\", "\u{0301}"]
        LinearCost.seeds { seed in
            let pattern = LinearCost.Pattern(of: sql, seed: seed)
            #expect(LinearCost.fault(of: pattern) { _ = try? AudienceSQLText($0) } == nil)
        }
    }

    @Test func `messages and names on pages`() {
        let heads = [
            "", "run `fanfare ", "campaign ", "the page of run ", "token:", "; --override-guard ", "x (uid ", "the ",
        ]
        for head in heads {
            for unit in LinearCost.combining + ["a", "1", "a (uid 1", "`fanfare x", "campaign a, start 2026-", " "] {
                let pattern = LinearCost.Pattern(unit, head: head, tail: " (uid x")
                #expect(
                    LinearCost.fault(of: pattern, upTo: 64 << 10) { text in
                        _ = PageHTML(message: text)
                        _ = PersonName.shown(text)
                    } == nil)
            }
        }
        #expect(PersonName.shown("ann (uid 1) (uid 1000)") == "ann (uid 1) (command line)")
        #expect(PersonName.shown("ann (uid x)") == "ann (uid x)" && PersonName.shown(" (uid 5)") == " (uid 5)")
    }

    /// What a list or a plan is named by in an address.
    @Test func `names of plans and places in lists`() {
        let signs = ["p2-", "-", "0", "aF9", "_", "=", "é", "\u{301}", ".", "x"]
        for unit in ["p2-", "a", "0-", "-", "=="] {
            #expect(
                LinearCost.fault(of: .init(unit), upTo: 256 << 10) { text in
                    _ = PlanToken(text)
                    _ = ApprovePlans.isPlan(text)
                } == nil)
        }
        LinearCost.seeds { seed in
            let pattern = LinearCost.Pattern(of: signs, seed: seed)
            #expect(
                LinearCost.fault(of: pattern) { text in
                    _ = PlanToken("p2-" + text)
                    _ = ApprovePlans.isPlan(text)
                    _ = AccountName.isForToken(text)
                    _ = AccountName.isPlain(text)
                    _ = AccountName.canonical("git:" + text)
                } == nil)
        }
    }

    @Test func `heads of requests`() {
        let signs = [
            "fanfare", "=", ";", "; ", "&", "a", "%41", "%", "\"", ",", ":", "[", "]", ".", " ", "é", "/", "?",
        ]
        LinearCost.seeds { seed in
            let pattern = LinearCost.Pattern(of: signs, seed: seed)
            #expect(
                LinearCost.fault(of: pattern) { text in
                    var head = HTTPRequest(method: .get, scheme: "http", authority: text, path: "/runs?" + text)
                    head.headerFields[.cookie] = text
                    let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(string: text)))
                    _ = Authenticator.cookie(of: request)
                    _ = HostRule.isHost(text)
                    for parameter in request.uri.queryParameters { _ = parameter.value }
                    _ = PageRequest.pairs(text)
                } == nil)
        }
    }

    /// The parser of the server's connections, with the bounds that the server gives it.
    private static func parse(_ text: String) {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = 8192
        limits.maxHeaderListSize = 8192
        limits.maxHeaderFieldCount = 100
        let decoder = HTTPRequestDecoder(
            leftOverBytesStrategy: .dropBytes, informationalResponseStrategy: .drop, limitConfiguration: limits)
        let channel = EmbeddedChannel(handler: ByteToMessageHandler(decoder))
        // In pieces: a head that is not whole yet is not read again and again.
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            do {
                try channel.writeInbound(ByteBuffer(bytes: rest.prefix(64)))
            } catch {
                break
            }
            rest = rest.dropFirst(64)
        }
        _ = try? channel.finish(acceptAlreadyClosed: true)
    }

    @Test func `heads of requests as they come over the wire`() {
        let signs = [
            "GET / HTTP/1.1\r\n", "Host: a\r\n", "\r\n", "\r", "\n", ":", " ", "a", "Content-Length: 1\r\n",
            "Transfer-Encoding: chunked\r\n", "1\r\nx\r\n", "0\r\n\r\n", "ffff", ";", "\t", "é", "%41", "?", "\0",
        ]
        for unit in ["a", "a: b\r\n", "\r\n", " ", "%41", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
            #expect(LinearCost.fault(of: .init(unit), upTo: 256 << 10, Self.parse) == nil)
            let inHead = LinearCost.Pattern(unit, head: "GET /", tail: " HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(LinearCost.fault(of: inHead, upTo: 256 << 10, Self.parse) == nil)
        }
        LinearCost.seeds { seed in
            for head in ["", "GET / HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"] {
                let pattern = LinearCost.Pattern(of: signs, seed: seed, head: head)
                #expect(LinearCost.fault(of: pattern, Self.parse) == nil)
            }
        }
    }

    @Test func `an answer names the first problems of a body`() throws {
        let unknown = (0..<20_000).map { "\"k\($0)\": 1" }.joined(separator: ", ")
        let problem = try #require(read("{\(unknown)}"))
        #expect(problem.errors?.count == ProblemList.shownMax + 1)
        #expect(problem.errors?.last?.detail == "and 19,981 more")
        #expect(try ResultJSON.text(problem).utf8.count < 10_000)
        let long = try #require(read("{\"\(String(repeating: "k", count: 100_000))\": 1, \"name\": \"x\"}"))
        #expect(try ResultJSON.text(long).utf8.count < 2_000)
    }

    @Test func `guards that there are not are named up to a number`() async throws {
        try await WebScene.with { scene in
            let guards = (0..<5_000).map { "\"g\($0)\"" }.joined(separator: ", ")
            let body = "{\"occurrence\": \"a\", \"override_guards\": [\(guards)]}"
            let answer = try await scene.api("POST", "/campaigns/new-podcast/runs", body: body)
            #expect(answer.status == 422 || answer.status == 404)
            #expect(answer.text.utf8.count < 10_000)
        }
    }

    @Test func `a long reason is refused, and a stop has its beginning`() async throws {
        try await WebScene.with { scene in
            let long = String(repeating: "z", count: 200_000)
            let lifted = try await scene.api("POST", "/stops/lift", body: "{\"reason\": \"\(long)\"}")
            #expect(lifted.status == 422 && lifted.text.contains("longer than 1,000 characters"))
            // One character, and 400 KB.
            let accents = "a" + String(repeating: "\u{301}", count: 200_000)
            for reason in [long, accents] {
                // Before the change is looked for.
                let rejected = try await scene.api("POST", "/changes/1/reject", body: "{\"reason\": \"\(reason)\"}")
                #expect(rejected.status == 404 || rejected.status == 422)
                #expect(rejected.text.utf8.count < 10_000)
            }
            let stopped = try await scene.api("POST", "/stops", body: "{\"reason\": \"\(long)\"}")
            #expect(stopped.text.utf8.count < 10_000)
            let occurrence = try await scene.api(
                "POST", "/campaigns/new-podcast/runs", body: "{\"occurrence\": \"\(long)\"}")
            #expect(occurrence.status >= 400 && occurrence.text.utf8.count < 10_000)
        }
    }

    @Test(arguments: ["9223372036854775s", "9223372036854775807ms", "106751991167d", "400000d"])
    func `a token cannot last longer than time does`(expires: String) async throws {
        try await WebScene.with { scene in
            let body = "{\"name\": \"x\", \"role\": \"viewer\", \"expires\": \"\(expires)\"}"
            let answer = try await scene.api("POST", "/tokens", body: body)
            #expect(answer.status == 422, "\(answer.text)")
        }
    }
}
