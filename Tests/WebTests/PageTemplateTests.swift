import CampaignFiles
import Campaigns
import Foundation
import Model
import Testing

@testable import Web

/// A misspelt field of a template shows nothing: each name in one is held against its model.
struct PageTemplateTests {
    struct Example: Sendable, CustomTestStringConvertible {
        var template: PageTemplate
        var model: @Sendable () throws -> any Sendable

        var testDescription: String { template.rawValue }
    }

    /// What a page's template sees.
    private struct Whole {
        var version: String
        var mayStopAll = true
        var content: any Sendable
    }

    @Test(arguments: examples) func `each name in a template is one of its model`(example: Example) throws {
        var texts = PageTemplate.texts
        let text = texts[example.template.rawValue, default: ""]
            .replacing("{{<layout}}{{$content}}", with: "").replacing("{{/content}}{{/layout}}", with: "")
        texts["it"] = "{{#content}}\(text){{/content}}"
        let keys = TemplateKeys(Whole(version: "1", content: try example.model()), "it", in: texts)
        #expect(keys.faults.isEmpty, "\(keys.faults)")
    }

    /// A form without any value is refused, see ``PageRequest/requireField()``.
    @Test(arguments: PageTemplate.allCases) func `each form has a field that it needs, or a button with a name`(
        template: PageTemplate
    ) throws {
        let text = try #require(PageTemplate.texts[template.rawValue])
        for form in text.matches(of: /<form[^>]*method="post"[^>]*>(?s:.*?)<\/form>/).map({ String($0.0) }) {
            let isSent =
                form.contains(/<(input|textarea)[^>]*name="[^>]*\brequired/)
                || form.contains(/<(input|textarea)[^>]*\brequired[^>]*name="/)
                || form.contains(/<(select|input type="(hidden|radio)") name="/) || form.contains(/<button[^>]*name="/)
            #expect(isSent || form.contains("multipart/form-data"), "\(form)")
        }
    }

    static let examples = [
        Example(template: .devices) {
            DevicePages.Search(
                find: "x", problem: "none", found: [try line()], hasFound: true, tableAddress: "/",
                counts: [.init(topic: "a", environment: "b", active: "1", suspended: "2", gone: "3")], hasCounts: true,
                isCounting: true, countedAt: PageHTML(time: "now"))
        },
        Example(template: .device) { DevicePage(try golden(ExplanationResult.self)) },
        Example(template: .segments) {
            SegmentsPage(
                segments: [.init(try golden(SegmentResult.self), ["campaign c"])], isEmpty: false, showsUsers: true,
                form: try form())
        },
        Example(template: .segment) {
            SegmentPage(
                name: "a", isDynamic: true, expression: "b", members: "1", changed: "now", form: try form(),
                changeAddress: "/", removeAddress: "/", users: "campaign c", mayReplace: true, given: "x",
                problem: "none", done: "all",
                devices: [try line()],
                hasDevices: true,
                nextAddress: "/", tableAddress: "/")
        },
        Example(template: .count) { try count() },
        Example(template: .audit) {
            AuditPages.Page(
                run: "1", actor: "a", since: "b", kinds: [.init(word: "a", label: "b", isChosen: true)],
                problem: "none",
                events: [
                    .init(
                        at: PageHTML(time: "now"), kind: "a", kindAddress: "/", actor: "b", actorAddress: "/",
                        runAddress: "/", runName: "c", detail: PageHTML(message: "d"), origin: "e")
                ], isEmpty: false, nextAddress: "/", tableAddress: "/")
        },
        Example(template: .health) { HealthPages.Page(try golden(HealthResult.self)) },
        Example(template: .changes) {
            let json =
                #"{"change": {"id": 1, "kind": "campaign", "name": "a", "path": "a.yaml", "author": "b", "asked_at": "#
                + #""2026-12-01T00:00:00Z", "etag": "c", "is_new": false, "is_outdated": true, "together": [2]}, "text": "d", "current": "e", "#
                + #""texts": [{"id": 1, "etag": "c"}, {"id": 2, "etag": "f"}]}"#
            let detail = try ResultJSON.value(ChangeDetailResult.self, from: json)
            return ChangesPage(
                changes: [.init(detail, mayRelease: true)], isEmpty: false, count: "Changes 1 to 1 of 3",
                earlier: "/", later: "/", problem: ["none"])
        },
        Example(template: .approvals) {
            ApprovalList(
                open: [approval], decided: [approval],
                stages: [
                    .init(
                        try ResultJSON.value(
                            WaitingStageResult.self,
                            from:
                                #"{"run": 1, "campaign": "c", "occurrence": "o", "stage": 2, "members": "10 %", "devices": 3, "reason": "waits"}"#
                        ))
                ], problem: "none")
        },
        Example(template: .approval) {
            let alert =
                #"{"aps": {"alert": {"title": "T", "subtitle": "S", "body": "\#(String(repeating: "b", count: 300))"}}}"#
            var phone = PhoneScreen(
                .init(payload: alert, locale: "en", variant: nil, payloadMaxBytes: 400, limitBytes: 4096),
                topic: "com.example.app", remarks: ["r"])
            phone.lookedUp = ["loc-key X"]
            (phone.picture, phone.buttons) = ("https://example.com/a.jpg", "EPISODE")
            phone.headline?.rest = "t"
            phone.subhead?.rest = "t"
            let fact = ApprovalPage.Fact(
                name: "a", now: "b", before: "c", differs: true, code: "d", codeBefore: "e")
            return ApprovalPage(
                plan: approval, note: "n", sentTo: "PRODUCTION", isProduction: true, authors: "a",
                signatures: [.init(summary: "a", fault: "b")], next: "c",
                source: .init(address: "/plans/1", label: "a"), corrects: 1, sinceRun: 1, refusals: ["d"],
                sentBefore: "e", lint: ["f"], phones: [phone], phonesReason: "g",
                before: .init(run: 1, phones: [phone], phonesReason: "h"), removedBy: 2, facts: [fact],
                payloads: [fact], hasPayloads: true, maySign: true, mayReject: true, isApproved: true,
                mayWithdraw: true,
                problem: "none")
        },
        Example(template: .people) {
            let choice = FormChoice(value: "a", label: "b", isChosen: true)
            let new = PeoplePages.Page.New(name: "a", expires: "c", roles: [choice], apps: [choice], isOpen: true)
            return PeoplePages.Page(
                link: .init(name: "a", address: "/"), secret: "s", problem: "none", person: new, program: new,
                tokens: [
                    .init(
                        name: "a", role: "b", topic: "c", state: "good", colour: "accepted",
                        made: PageHTML(time: "d"), madeBy: "e", ends: PageHTML(time: "f"), used: PageHTML(time: "g"),
                        revokeAddress: "/", change: .init(address: "/", roles: [choice], apps: [choice]))
                ], isEmpty: false)
        },
        Example(template: .join) {
            JoinPages.Page(name: "a", role: "b", about: "c", topic: "d", joinAddress: "/", secret: "s")
        },
        Example(template: .setupImport) {
            ImportPage(
                fileName: "a", address: "/", problem: "b", isPreview: true, columns: "c", unknown: "d",
                rows: [
                    .init(
                        token: "a", app: "b", environment: "c", installation: "d", user: "e", locale: "f", zone: "g")
                ], hasRows: true, rejected: "1 line", faults: [.init(line: "1", reason: "b")], importLabel: "Import",
                isRunning: true, progress: "1 device", result: "done")
        },
    ]

    private static let approval = ApprovalList.Row(
        address: "/", name: "a", excerpt: "w", remark: "n", state: "b", colour: "paused", reach: "1",
        devices: "1 device",
        asked: "c", hash: "p1", isOpen: true, outcome: "d", run: 1, askAddress: "/")

    private static func line() throws -> DevicePages.Line { DevicePages.Line(try golden(DeviceResult.self)) }

    private static func form() throws -> SegmentForm {
        var form = SegmentForm(["name": "a"], topics: ["b"], isOffered: true, mayKeep: true)
        form.problem = "none"
        form.known = .init(address: "/", label: "Open a", theirs: "b", tag: "t")
        form.count = try count()
        var values = AudienceValuesResult()
        values.locales = [.init("fr", devices: 2)]
        values.tags = [.init("t", devices: 2)]
        values.appVersions = [.init("4.2", devices: 2)]
        let fields = ComposerFields(audience: #"attribute("a") = "b""#)
        form.choices = AudienceChoices(values, segments: ["s"], fields)
        return form
    }

    private static func count() throws -> CountView {
        var view = CountView(try golden(ExpressionCountResult.self))
        view.faults = CountView(problems: [try golden(ExpressionProblemResult.self)]).faults
        (view.problem, view.when) = ("none", "now")
        return view
    }

    /// An example of a result, from the files that pin their shapes.
    private static func golden<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../CampaignsTests/Golden/\(type).json")
        return try ResultJSON.value(type, from: try String(contentsOf: file, encoding: .utf8))
    }
}
