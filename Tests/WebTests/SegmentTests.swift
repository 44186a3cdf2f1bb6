import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import Testing

@testable import Web

/// Segments by API and by page: the same refusals, and all of a change or nothing.
@Suite(.timeLimit(.minutes(10)))
struct SegmentTests {
    private static let german = "{\"expression\": \"locale in (\\\"de\\\")\"}"

    @Test func `a segment is defined, read, counted and listed`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<10)
            let defined = try await scene.api("PUT", "/segments/german", as: .author, body: Self.german)
            #expect(defined.status == 200)
            let segment: SegmentResult = try defined.result()
            #expect(segment.count == 5 && segment.kind == "dynamic")
            try await scene.sending.addDevices(10..<20)
            let read: SegmentResult = try await scene.api("GET", "/segments/german", as: .viewer).result()
            #expect(read.count == 10)
            let list: ListPage<SegmentResult> = try await scene.api("GET", "/segments", as: .viewer).result()
            #expect(list.items.map(\.name) == ["german"])
            let table = try await scene.api("GET", "/segments?format=csv", as: .viewer)
            #expect(table.text.hasPrefix("name,kind,expression,count,updated_at\ngerman,dynamic,"))
            let event = try #require(try await scene.store.events(run: nil, since: nil, limit: 1).first)
            #expect(event.kind == "segment_defined" && event.actor.name == "author (token)")
            #expect(event.detail == "german: locale in (\"de\")")
        }
    }

    @Test func `an expression with faults is refused at its columns, by both ways in`() async throws {
        try await WebScene.with { scene in
            let body = "{\"expression\": \"lang = \\\"de\\\" and county = \\\"DE\\\"\"}"
            let answer = try await scene.api("PUT", "/segments/x", as: .author, body: body)
            #expect(answer.status == 422)
            let errors = try #require(answer.problem?.errors)
            #expect(errors.count == 2)
            #expect(errors.allSatisfy { $0.pointer == "/expression" })
            #expect(errors[0].detail.hasPrefix("expression:1:1: error: "))
            #expect(errors[1].detail.hasPrefix("expression:1:17: error: "))
            let page = try await scene.page(
                "/segments", as: .author,
                form: ["name": "<b>x</b>", "expression": "lang = \"de\"", "do": "save", "topic": PipelineScene.topic])
            #expect(page.status == 422)
            #expect(page.text.contains("value=\"&lt;b&gt;x&lt;/b&gt;\""))
            #expect(page.text.contains("lang = &quot;de&quot;</textarea>"))
            #expect(page.text.contains("Column 1: "))
            #expect(try await scene.api("GET", "/segments/x", as: .viewer).status == 404)
            #expect(try await scene.api("GET", "/segments/x/members", as: .viewer).status == 404)
            let cycle = try await scene.api(
                "PUT", "/segments/x", as: .author, body: "{\"expression\": \"segment(\\\"x\\\")\"}")
            #expect(cycle.status == 422)
            let viewer = try await scene.api("PUT", "/segments/x", as: .viewer, body: Self.german)
            #expect(viewer.status == 403)
        }
    }

    @Test func `an expression is counted for an app and a push type`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<10)
            let count = { (more: String) in
                try await scene.api(
                    "POST", "/segments/count", as: .author,
                    body: "{\"expression\": \"locale in (\\\"de\\\")\", \"topic\": \"\(PipelineScene.topic)\"\(more)}")
            }
            let counted: ExpressionCountResult = try await count("").result()
            #expect(counted.selected == 5 && counted.reach == 5 && counted.byEnvironment == ["production": 5])
            #expect(try await count(", \"push_type\": \"alarm\"").status == 422)
            #expect(try await count(", \"push_typ\": \"alert\"").problem?.detail.contains("did you mean") ?? false)
            let fragment = try await scene.page(
                "/segments/count?topic=\(PipelineScene.topic)&push_type=alert&expression=locale%20in%20(%22de%22)",
                as: .author)
            #expect(fragment.status == 200)
            #expect(fragment.text.contains("<strong>5</strong> of"))
            #expect(!fragment.text.contains("<html"))
            let form = try await scene.page(
                "/segments", as: .author,
                form: [
                    "expression": "locale in (\"de\")", "do": "count", "topic": PipelineScene.topic,
                    "push_type": "alert",
                ])
            #expect(form.status == 200)
            #expect(form.text.contains("<strong>5</strong> of"))
        }
    }

    @Test func `members come in by lines, bad ones are named, and go out by pages`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<120)
            let lines = (0..<100).map { "{\"installation_id\": \"install-\($0)\"}\n" }.joined()
            let bad = "{\"userid\": \"u\"}\n{\"user_id\": \"nobody\"}\n[]\n{\"token\": \"xx\"}"
            let answer = try await scene.lines("/segments/fans/members", as: .author, lines + bad)
            #expect(answer.status == 200)
            let result: SegmentChangeResult = try answer.result()
            #expect(result.read == 104 && result.rejected == 3 && result.added == 100 && result.unmatched == 1)
            #expect(result.rejects.map(\.line) == [101, 103, 104])
            #expect(result.rejects[0].reason.contains("unknown key \"userid\"; did you mean \"user_id\"?"))
            var cursor = ""
            var seen: [Int64] = []
            repeat {
                let page: ListPage<DeviceResult> = try await scene.api(
                    "GET", "/segments/fans/members?limit=40\(cursor)", as: .viewer
                ).result()
                seen += page.items.map(\.device)
                cursor = page.next.map { "&cursor=\($0.inAddress)" } ?? ""
            } while !cursor.isEmpty
            #expect(seen.count == 100 && Set(seen).count == 100)
            let out: SegmentChangeResult = try await scene.lines(
                "/segments/fans/members?mode=replace", as: .author, "{\"installation_id\":\"install-119\"}"
            ).result()
            #expect(out.added == 1 && out.removed == 100)
            #expect(try await scene.api("GET", "/segments/fans/members?cursor=%00", as: .viewer).status == 422)
            #expect(try await scene.lines("/segments/fans/members?mode=ad", as: .author, "").status == 422)
            let own = try await scene.bearer(.author, topic: PipelineScene.topic)
            let replaced = try await scene.lines("/segments/fans/members?mode=replace", "", headers: own)
            #expect(replaced.status == 403)
        }
    }

    @Test func `of members whose lines break off nothing is changed`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<10)
            _ = try await scene.lines("/segments/fans/members", as: .author, "{\"installation_id\": \"install-1\"}\n")
            let connection = try RawConnection(port: scene.port)
            try await connection.begin(
                "POST", "/api/v1/segments/fans/members?mode=replace", token: scene.secrets.secret(of: .author))
            try await connection.chunk("{\"installation_id\": \"install-2\"}\n{\"installation_id\": \"install-3\"}\n")
            connection.leave()
            // Answered by the same event loops behind it.
            for _ in 0..<8 { _ = try await scene.api("GET", "/segments", as: .viewer) }
            let page: ListPage<DeviceResult> = try await scene.api("GET", "/segments/fans/members", as: .viewer)
                .result()
            #expect(page.items.map(\.installationId) == ["install-1"])
        }
    }

    @Test func `members are pasted into a page, and what was typed stays where it is refused`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<10)
            let form = [
                "members": "install-1\r\n install-2 \r\n\r\nnobody\r\n", "key": "installation_id", "mode": "add",
            ]
            let changed = try await scene.page("/segments/fans/members", as: .author, form: form)
            #expect(changed.status == 303)
            let done = try await scene.page(try #require(changed.header("location")), as: .author)
            #expect(done.text.contains("3 lines, 2 devices added"))
            #expect(done.text.contains(">install-2</a>"))
            // Whoever makes an address says nothing by it.
            for words in ["call+this+number", "1-2-3", "1-2-3-4-x", "1-2-3-4--5"] {
                let forged = try await scene.page("/segments/fans?done=\(words)", as: .author)
                #expect(forged.status == 200 && !forged.text.contains("role=\"status\""), "\(words)")
            }
            _ = try await scene.api("PUT", "/segments/german", as: .author, body: Self.german)
            let refused = try await scene.page("/segments/german/members", as: .author, form: form)
            #expect(refused.status == 422)
            #expect(refused.text.contains("accepts no members"))
            let viewer = try await scene.page("/segments/fans", as: .viewer)
            #expect(!viewer.text.contains("Change the members"))
            let event = try #require(
                try await scene.store.events(run: nil, since: nil, limit: 10).last { $0.kind == "segment_changed" })
            #expect(event.actor.name == "author (signed in)")
        }
    }

    @Test func `a segment that nothing uses is removed, by API and by page; another one names what uses it`()
        async throws
    {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<4)
            _ = try await scene.api("PUT", "/segments/german", as: .author, body: Self.german)
            let others = "{\"expression\": \"not segment(\\\"german\\\")\"}"
            _ = try await scene.api("PUT", "/segments/others", as: .author, body: others)
            let used = try await scene.api("DELETE", "/segments/german", as: .author)
            #expect(used.status == 409 && used.problem?.detail.contains("used by segment \"others\"") == true)
            let page = try await scene.page("/segments/german/removal", as: .author, form: [:])
            #expect(page.status == 409 && page.text.contains("used by segment &quot;others&quot;"))
            #expect(try await scene.api("DELETE", "/segments/others", as: .viewer).status == 403)
            #expect(!(try await scene.page("/segments/others", as: .viewer)).text.contains("Delete the segment"))
            #expect(try await scene.page("/segments/others", as: .author).text.contains("Delete the segment"))
            let removed: SegmentResult = try await scene.api("DELETE", "/segments/others", as: .author).result()
            #expect(removed.name == "others" && removed.count == 2)
            #expect(try await scene.api("DELETE", "/segments/others", as: .author).status == 404)
            let gone = try await scene.page("/segments/german/removal", as: .author, form: [:])
            #expect(gone.status == 303 && gone.header("location") == "/segments")
            #expect(try await scene.store.segments(now: nil).isEmpty)
            let events = try await scene.store.events(run: nil, since: nil, limit: 10)
                .filter { $0.kind == "segment_removed" }
            #expect(events.map(\.detail) == ["others", "german"])
        }
    }

    @Test func `a segment's name is shown as text, and found again by its address`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<2)
            let name = "<script>alert(1)</script> 50% & more"
            let saved = try await scene.page(
                "/segments", as: .author, form: ["name": name, "expression": "locale in (\"de\")", "do": "save"])
            #expect(saved.status == 303)
            let page = try await scene.page(try #require(saved.header("location")), as: .author)
            #expect(page.status == 200)
            #expect(page.text.contains("<h1>&lt;script&gt;alert(1)&lt;/script&gt; 50% &amp; more</h1>"))
            #expect(!(try await scene.page("/segments", as: .viewer)).text.contains("<script>alert"))
        }
    }

    /// The value of a hidden field or a button of a form.
    private func field(_ name: String, in page: String) throws -> String {
        let found = page.firstMatch(of: try Regex("name=\"\(name)\" value=\"([^\"]*)\""))
        return try #require(found?.output[1].substring.map(String.init))
    }

    @Test func `of two who define one segment the second sees both expressions, and nothing is lost unasked`()
        async throws
    {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<4)
            let german = "locale in (\"de\")"
            func source() async throws -> String? {
                try await scene.api("GET", "/segments/german").result(SegmentResult.self).expression
            }
            let form = ["name": "german", "expression": german, "do": "save"]
            #expect(try await scene.page("/segments", as: .author, form: form).status == 303)
            // A new one of the same name is none.
            let taken = form.merging(["expression": "everyone"]) { $1 }
            let refused = try await scene.page("/segments", as: .admin, form: taken)
            #expect(refused.status == 409 && refused.text.contains("<a href=\"/segments/german\">Open german</a>"))
            #expect(try await source() == german)
            let open = try await scene.page("/segments/german", as: .author).text
            var opened = ["segment": try field("segment", in: open), "opened": try field("opened", in: open)]
            opened.merge(form) { $1 }
            let first = opened.merging(["expression": "locale in (\"de\", \"nl\")"]) { $1 }
            #expect(try await scene.page("/segments", as: .author, form: first).status == 303)
            let second = opened.merging(["expression": "everyone"]) { $1 }
            for fields in [second, second.merging(["do": "count"]) { $1 }, second] {
                let late = try await scene.page("/segments", as: .admin, form: fields)
                #expect(late.status == (fields["do"] == "count" ? 200 : 412))
                #expect(try field("opened", in: late.text) == opened["opened"])
                guard late.status == 412 else { continue }
                #expect(late.text.contains("<code>locale in (&quot;de&quot;, &quot;nl&quot;)</code>"))
                #expect(late.text.contains(">everyone</textarea>"))
                opened["over"] = try field("over", in: late.text)
            }
            #expect(try await source() == "locale in (\"de\", \"nl\")")
            opened["do"] = nil
            let meant = opened.merging(["expression": "everyone"]) { $1 }
            #expect(try await scene.page("/segments", as: .admin, form: meant).status == 303)
            #expect(try await source() == "everyone")
        }
    }

    @Test func `a segment is replaced by its tag, or whatever it is where no tag is given`() async throws {
        try await WebScene.with { scene in
            let path = "/segments/german"
            let made = try await scene.api("PUT", path, as: .author, body: Self.german)
            let tag = try #require(made.header("etag"))
            #expect(try await scene.api("GET", path, as: .viewer).header("etag") == tag)
            let everyone = #"{"expression": "everyone"}"#
            let seen = try await scene.api("PUT", path, as: .author, body: everyone, headers: ["If-Match": tag])
            #expect(seen.status == 200 && seen.header("etag") != tag)
            let late = try await scene.api("PUT", path, as: .author, body: Self.german, headers: ["If-Match": tag])
            #expect(late.status == 412 && late.problem?.detail.contains("was changed by another user") == true)
            #expect(try await scene.api("PUT", path, as: .author, body: Self.german).status == 200)
            let gone = try await scene.api(
                "PUT", "/segments/other", as: .author, body: everyone, headers: ["If-Match": tag])
            #expect(gone.status == 412)
            #expect(try await scene.api("GET", "/segments/other").status == 404)
        }
    }

    @Test(arguments: ["ger\u{200B}man", "ger\u{AD}man", "g\u{A0}erman", "caf\u{65}\u{301}", "\u{3164}"])
    func `a new segment's name looks like no other`(name: String) async throws {
        try await WebScene.with { scene in
            let refused = try await scene.page(
                "/segments", as: .author, form: ["name": name, "expression": "everyone", "do": "save"])
            #expect(refused.status == 422, "\(refused.status)")
            #expect(try await scene.store.segments(now: nil).isEmpty)
        }
    }
}
