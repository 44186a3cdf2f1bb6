import Foundation
import Model
import SendingScene
import Testing

@testable import Web

/// The words of pages: no command of the terminal, no raw code alone, and times in the visitor's zone.
struct PageWordsTests {
    @Test(arguments: [
        (
            "no run 9 in the store; `fanfare status` lists the runs",
            "no run 9 in the store; the Broadcasts page lists the runs"
        ),
        ("`fanfare resume 7` continues it", "“Resume” on the page of run 7 continues it"),
        ("check `fanfare report 7`", "check the page of run 7"),
        ("needs a signature: run `fanfare approve p1-ab`", "needs a signature: the Approvals page"),
        (
            "`fanfare approve 7 --stage 2` sends it",
            "“Approve the next stage”, an approver’s button on the page of run 7, sends it"
        ),
        (
            "the name is empty, perhaps from an empty script variable; give a name, such as x, or omit --occurrence",
            "the name is empty; give a name, such as x"
        ),
        (
            "`fanfare approve 7 --variant NAME` sends long or short",
            "“Send … to the rest”, an approver’s button on the page of run 7, sends long or short"
        ),
        ("none is running; run: systemctl start fanfare", "none is running; ask the operator to start the service"),
        ("the clock differs; run: timedatectl set-ntp true", "the clock differs; ask the operator to turn on NTP"),
        ("a text of fanfare alone", "a text of fanfare alone"),
        ("`fanfare backup` copies it", "the operator’s command line copies it"),
    ])
    func `a command becomes the page or the button that does the same`(text: String, shown: String) {
        #expect(CommandReplacement.replaced(in: text) == shown)
    }

    @Test func `a message has links and times, and foreign text in it stays text`() {
        let message = PageHTML(message: "`fanfare report 7` <b> since 2026-11-22T08:00:12Z; the Health page")
        #expect(
            message.html == """
                <a href="/runs/7">the page of run 7</a> &lt;b&gt; since <time datetime="2026-11-22T08:00:12Z" \
                title="2026-11-22 08:00:12 UTC">2026-11-22 08:00:12</time>; the <a href="/health">Health</a> page
                """)
    }

    @Test func `a time follows the visitor's zone, in summer and in winter`() throws {
        let berlin = try #require(ViewerZone.named("Europe/Berlin"))
        ViewerZone.$current.withValue(berlin) {
            #expect(PageHTML(time: "2026-07-01T22:30:00Z").html.contains(">2026-07-02 00:30:00<"))
            #expect("2026-11-22T08:00:12.345Z".shownTime == "2026-11-22 09:00:12")
            #expect("not a time".shownTime == "not a time")
        }
        #expect("2026-11-22T08:00:12Z".shownTimeAndZone == "2026-11-22 08:00:12 UTC")
    }

    @Test(arguments: ["Nowhere/Place", "../../etc/passwd", "", "Europe/Berlin\"", String(repeating: "a", count: 65)])
    func `a zone that does not exist is none`(name: String) {
        #expect(ViewerZone.named(name) == nil)
    }

    @Test func `the zone is a form without script, and a wrong one changes nothing`() async throws {
        try await WebScene.with { scene in
            let run = try await scene.sending.start(try scene.sending.definition())
            let cookie = "fanfare=\(scene.secrets.session(of: .viewer))"
            let plain = try await scene.page("/runs/\(run.id)", as: .viewer)
            #expect(plain.text.contains("Times in UTC"))
            let chosen = try await scene.page("/zone", as: .viewer, form: ["zone": "Asia/Tokyo"])
            #expect(chosen.status == 303 && chosen.header("set-cookie")?.hasPrefix("zone=Asia/Tokyo;") == true)
            let page = try await scene.page("/runs/\(run.id)", headers: ["Cookie": "\(cookie); zone=Asia/Tokyo"])
            let tokyo = try #require(TimeZone(identifier: "Asia/Tokyo"))
            let shown = ViewerZone.$current.withValue(tokyo) { run.createdAt.iso8601.shownTime }
            #expect(page.text.contains("Times in Asia/Tokyo") && page.text.contains(">\(shown)</time>"))
            #expect(page.text.contains("title=\"\(run.createdAt.iso8601.timeWithoutZone) UTC\""))
            let wrong = try await scene.page("/runs/\(run.id)", headers: ["Cookie": "\(cookie); zone=Mars/Base"])
            #expect(wrong.text.contains("Times in UTC"))
            #expect(try await scene.page("/zone", as: .viewer, form: ["zone": "Mars/Base"]).status == 422)
        }
    }

    @Test func `no page shows a command of the terminal`() async throws {
        try await WebScene.with { scene in
            let run = try await scene.sending.start(try scene.sending.definition())
            let pages = [
                "/", "/runs/\(run.id)", "/runs/999", "/campaigns", "/campaigns/none", "/calendar", "/segments",
                "/segments/none", "/devices", "/devices?find=nobody", "/devices/999", "/audit", "/health", "/tokens",
                "/approvals", "/approvals/none", "/plans", "/plans/999", "/templates", "/stops", "/changes",
            ]
            for path in pages {
                let page = try await scene.page(path, headers: ["Accept": "text/html"]).text
                for word in ["fanfare status", "`fanfare", "<code>fanfare", "systemctl", "timedatectl"] {
                    #expect(!page.contains(word), "\(path): \(word)")
                }
            }
            let signIn = try await scene.ask("GET", "/sign-in")
            #expect(!signIn.text.contains("fanfare tokens"))
        }
    }

    @Test(arguments: SuppressionReason.allCases.map(\.rawValue))
    func `each reason of Fanfare has words of its own`(code: String) {
        #expect(ReasonSummary(code: code).summary != code && !ReasonSummary(code: code).summary.contains("_"))
    }

    @Test func `an unknown reason keeps its code`() {
        #expect(ReasonSummary(code: "SomethingNew").summary == "SomethingNew")
        #expect(ReasonSummary(code: "Unregistered").summary == "APNs says that the app was uninstalled")
    }
}
