import Campaigns
import Foundation
import Model
import SendingScene
import TestSupport
import Testing

@testable import Web

/// The frame around every page: the menu, unknown addresses, the icon and the compression.
struct FrameTests {
    private static let asBrowser = ["Accept": "text/html,application/xhtml+xml,*/*;q=0.8"]

    @Test func `an unknown address is a page for a browser, and a problem for a program`() async throws {
        try await WebScene.with { scene in
            let page = try await scene.page("/nowhere", headers: Self.asBrowser)
            #expect(page.status == 404)
            #expect(page.text.contains("<h1>Page not found</h1>") && page.text.contains("aria-label=\"Sections\""))
            #expect(page.header("content-security-policy") != nil)
            let stranger = try await scene.ask("GET", "/nowhere", headers: Self.asBrowser)
            #expect(stranger.status == 404 && !stranger.text.contains("aria-label=\"Sections\""))
            // An address of forms alone, as Back may ask for it, and as it stands above the answer to a form.
            for (address, above) in [
                ("/stops/lift", "/stops"), ("/campaigns/a/check", "/campaigns/a"),
                ("/plans/1/test-send", "/plans/1"), ("/sign-out", "/"),
            ] {
                let form = try await scene.page(address, headers: Self.asBrowser)
                #expect(form.status == 303 && form.header("location") == above, "\(address)")
            }
            let program = try await scene.page("/stops/lift")
            #expect(program.status == 405 && program.header("allow") == "POST")
            #expect(try await scene.page("/nowhere").text == "/nowhere does not exist\n")
            let api = try await scene.api("GET", "/nowhere", headers: Self.asBrowser)
            #expect(api.status == 404 && api.problem?.status == 404)
        }
    }

    @Test func `the menu has five sections, marks the open page, and hides what a role may not open`() async throws {
        try await WebScene.with { scene in
            let page = try await scene.page("/devices", as: .viewer).text
            for label in ["Broadcasts", "Campaigns", "Calendar", "Audience", "Admin"] {
                #expect(page.contains(">\(label)</a>"), "\(label)")
            }
            #expect(page.contains("<a href=\"/segments\" aria-current=\"true\">Audience</a>"))
            #expect(page.contains("<a href=\"/devices\" aria-current=\"page\">Devices</a>"))
            #expect(page.contains("<nav class=\"tabs\" aria-label=\"Pages of Audience\">"))
            #expect(!page.contains("class=\"count\""))
            let health = try await scene.page("/health", as: .viewer).text
            #expect(health.contains("href=\"/guide\"") && !health.contains("href=\"/people\""))
            #expect(try await scene.page("/health").text.contains("href=\"/people\""))
            #expect(!(try await scene.page("/calendar").text.contains("class=\"tabs\"")))
        }
    }

    @Test func `the menu counts the requests that wait for the visitor, and for no one else`() async throws {
        try await WebScene.with { configuration in
            var rules = ApprovalRules(rules: [.init(above: 3, needs: 2)])
            rules.files = ApprovalRules.Files(campaigns: configuration.campaigns, templates: configuration.templates)
            configuration.approvals = rules
        } _: { scene in
            try await scene.addCampaign()
            let badge = "class=\"count\">1<span"
            #expect(!(try await scene.page("/", as: .approver).text.contains(badge)))
            let asked = try await scene.api(
                "POST", "/campaigns/new-podcast/runs", as: .sender,
                body: #"{"occurrence": "e-1", "variables": {"title": "The Reef"}}"#)
            #expect(asked.status == 409)
            let page = try await scene.page("/", as: .approver).text
            #expect(page.contains("Admin <b \(badge)"))
            #expect(try await scene.page("/health", as: .approver).text.contains("Approvals <b \(badge)"))
            // A viewer signs nothing.
            #expect(!(try await scene.page("/", as: .viewer).text.contains(badge)))
            let list = try await scene.api("GET", "/approvals", as: .viewer)
            let plan = try #require(try list.result(ListPage<ApprovalResult>.self).items.first)
            let signed = try await scene.api(
                "POST", "/approvals/\(plan.digest)/approve", as: .approver,
                body: #"{"reason": "fine", "plan": "\#(plan.plan)"}"#)
            #expect(signed.status == 200, "\(signed.text)")
            #expect(!(try await scene.page("/", as: .approver).text.contains(badge)))
            #expect(try await scene.page("/", as: .admin).text.contains(badge))
        }
    }

    @Test(arguments: [true, false]) func `the menu counts one's own request only if its author may sign`(
        notByAuthor: Bool
    ) async throws {
        try await WebScene.with { configuration in
            var rules = ApprovalRules(rules: [.init(above: 3, needs: 1, notByAuthor: notByAuthor)])
            rules.files = ApprovalRules.Files(campaigns: configuration.campaigns, templates: configuration.templates)
            configuration.approvals = rules
        } _: { scene in
            try await scene.addCampaign()
            let asked = try await scene.api(
                "POST", "/campaigns/new-podcast/runs", as: .admin,
                body: #"{"occurrence": "e-1", "variables": {"title": "The Reef"}}"#)
            #expect(asked.status == 409)
            let badge = "class=\"count\">1<span"
            #expect(try await scene.page("/", as: .admin).text.contains(badge) == !notByAuthor)
            #expect(try await scene.page("/", as: .approver).text.contains(badge))
        }
    }

    @Test(arguments: [
        ("gzip", true), ("br, gzip;q=0.5", true), ("GZIP", true), ("gzip;q=0", false), ("br", false), ("", false),
    ])
    func `gzip is used only if the client accepts it`(header: String, isAccepted: Bool) {
        #expect(GzipResponses.accepts(header) == isAccepted)
    }

    @Test func `pages, scripts and reports are compressed, and streams and data are not`() async throws {
        try await WebScene.with { scene in
            let run = try await scene.sending.start(try scene.sending.definition())
            let asks = ["Accept-Encoding": "gzip"]
            for path in ["/", "/assets/style.css", "/assets/console.js", "/runs/\(run.id)/report.html"] {
                let plain = try await scene.page(path)
                #expect(plain.header("content-encoding") == nil && plain.header("vary") == "Accept-Encoding")
                let packed = try await scene.exchange(path, headers: asks)
                #expect(packed.headers["content-encoding"] == "gzip", "\(path)")
                #expect(packed.body.prefix(2) == [0x1F, 0x8B] && packed.body.count < plain.text.utf8.count / 2)
                #expect(try GzipCommand.unpacked(packed.body).count == plain.text.utf8.count, "\(path)")
            }
            for path in ["/runs/\(run.id)/report.json", "/runs/\(run.id)/deliveries.csv"] {
                #expect(try await scene.page(path, headers: asks).header("content-encoding") == nil, "\(path)")
            }
        }
    }

    @Test func `the icon is a file of the server's own`() async throws {
        try await WebScene.with { scene in
            let page = try await scene.page("/").text
            let place = try #require(page.firstMatch(of: /rel="icon" type="image\/svg\+xml" href="([^"]+)"/))
            let icon = try await scene.ask("GET", String(place.1))
            #expect(icon.status == 200 && icon.header("content-type") == "image/svg+xml")
        }
    }
}

/// The program `gzip` of the system, which knows nothing of ours.
private enum GzipCommand {
    static func unpacked(_ bytes: [UInt8]) throws -> [UInt8] {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/gzip")
        process.arguments = ["-dc"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(bytes))
        try input.fileHandleForWriting.close()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return [UInt8](data)
    }
}

extension WebScene {
    /// A page with a session of an administrator, with the bytes of its body.
    fileprivate func exchange(_ path: String, headers: [String: String]) async throws -> HTTPExchange {
        let headers = headers.merging(["Cookie": "fanfare=\(secrets.session(of: .admin))"]) { $1 }
        return try await HTTPExchange.ask("GET", path, port: port, headers: headers)
    }
}
