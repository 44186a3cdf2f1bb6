import Campaigns
import Foundation
import HTTPTypes
import Model
import SendingScene
import Testing

@testable import Web

/// Nobody sees a link or a button that they would be refused.
@Suite(.timeLimit(.minutes(10)))
struct OfferTests {
    private static let roles = AccessRole.allCases.filter { $0.may(.read) }

    /// What a text leads to: the addresses of links, and of forms and buttons that send something.
    private static func offers(in page: String) -> [(address: String, isForm: Bool)] {
        let links = page.matches(of: /href="(\/[^"#?]*)/).map { (String($0.1), false) }
        let forms = page.components(separatedBy: "<form ").dropFirst().compactMap { text -> [(String, Bool)]? in
            let form = text.components(separatedBy: "</form>")[0]
            // One that has no button is there to be read.
            guard form.contains("<button") else { return nil }
            return form.matches(of: /action="(\/[^"#?]*)/).map { (String($0.1), true) }
        }
        return links + forms.flatMap(\.self)
    }

    private static func route(_ offer: (address: String, isForm: Bool), in routes: [PageRoute]) -> PageRoute? {
        let parts = offer.address.split(separator: "/")
        let fitting = routes.filter { route in
            let own = route.path.split(separator: "/")
            return own.count == parts.count && zip(own, parts).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
        }
        let (plain, named) = (fitting.filter { !$0.path.contains("{") }, fitting.filter { $0.path.contains("{") })
        let method: HTTPRequest.Method = offer.isForm ? .post : .get
        return (plain + named).first { $0.method == method } ?? (plain + named).first
    }

    @Test(arguments: roles) func `what a page offers is allowed to whoever sees it`(role: AccessRole) async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let run = try await scene.sending.start(try scene.sending.definition())
            let paused = try await scene.sending.start(try scene.sending.definition(), occurrence: "paused")
            _ = try await scene.api("POST", "/runs/\(paused.id)/pause", as: .sender)
            _ = try await scene.page(
                "/segments", as: .author, form: ["name": "german", "expression": "locale in (\"de\")", "do": "save"])
            _ = try await scene.page("/segments/fans/members", as: .author, form: ["members": "install-1"])
            let routes = scene.webConsole.pages
            var seen = 0
            for page in [
                "/", "/runs/\(run.id)", "/runs/\(paused.id)", "/runs/\(run.id)/deliveries", "/campaigns",
                "/campaigns/new-podcast", "/calendar", "/segments", "/segments/german", "/segments/fans", "/devices",
                "/devices/1", "/audit", "/health",
            ] {
                let answer = try await scene.page(page, as: role)
                #expect(answer.status == 200, "\(page)")
                for offer in Self.offers(in: answer.text) {
                    let route = try #require(Self.route(offer, in: routes), "\(page): \(offer)")
                    let isAllowed = route.permission.map(role.may) ?? true
                    #expect(isAllowed, "\(page) offers \(offer.address) to \(role)")
                    seen += 1
                }
            }
            #expect(seen > 100)
        }
    }
}
