import Campaigns
import Model
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// The form of a segment: languages, countries and the like to choose from, beside the expression.
@Suite(.timeLimit(.minutes(10)))
struct SegmentFormTests {
    private static let choice = ["name": "german", "c.who": "choose", "c.who.locale.de": "on", "c.who.countries": ""]

    @Test func `devices are chosen without an expression, counted and saved`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<10)
            let form = Self.choice.merging(["topic": PipelineScene.topic, "expression": "typed before"]) { $1 }
            let counted = try await scene.page("/segments", as: .author, form: form.merging(["do": "count"]) { $1 })
            #expect(counted.status == 200 && counted.text.contains("<strong>5</strong> of 5 selected devices"))
            #expect(counted.text.contains("locale in (&quot;de&quot;)</textarea>"))
            #expect(counted.text.contains(#"name="c.who.locale.de" checked"#))
            let query = "topic=\(PipelineScene.topic)&push_type=alert&c.who=choose&c.who.locale.de=on"
            let live = try await scene.page("/segments/count?\(query)", as: .author)
            #expect(live.text.contains("<strong>5</strong> of 5 selected devices"))
            let saved = try await scene.page("/segments", as: .author, form: form.merging(["do": "save"]) { $1 })
            #expect(saved.status == 303, "\(saved.text)")
            let page = try await scene.page("/segments/german", as: .author)
            #expect(page.text.contains("locale in (&quot;de&quot;)") && page.text.contains(#"value="choose" checked"#))
            #expect(page.text.contains(#"name="c.who.locale.de" checked"#))
            // A segment does not choose itself.
            #expect(!page.text.contains("c.who.segment.german"))
        }
    }

    @Test func `a choice of nothing is refused, and an expression is shown as one`() async throws {
        try await WebScene.with { scene in
            let nothing = ["name": "none", "c.who": "choose", "do": "save"]
            #expect(try await scene.page("/segments", as: .author, form: nothing).status == 422)
            let rich = ["name": "rich", "c.who": "expression", "expression": "badge > 3 or badge < 1", "do": "save"]
            #expect(try await scene.page("/segments", as: .author, form: rich).status == 303)
            let page = try await scene.page("/segments/rich", as: .author)
            #expect(page.text.contains(#"value="expression" checked"#), "\(page.text)")
        }
    }

    @Test func `the list and the page say what uses a segment, and tell nothing of other apps`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            for (name, expression) in [("german", "locale in (\"de\")"), ("fans", "segment(\"german\")")] {
                _ = try await scene.page(
                    "/segments", as: .author, form: ["name": name, "expression": expression, "do": "save"])
            }
            let text = WebScene.campaignText.replacing(#"locale in ("en", "de")"#, with: #"segment("german")"#)
            try scene.folder.write(text, to: "campaigns/new-podcast.yaml")
            let visitor = try await scene.confinedVisitor(to: PipelineScene.topic, as: .viewer)
            for path in ["/segments", "/segments/german"] {
                let page = try await scene.page(path, as: .viewer)
                #expect(page.text.contains("campaign new-podcast, segment &quot;fans&quot;"), "\(path) \(page.text)")
                let confined = try await scene.page(path, headers: visitor)
                #expect(confined.status == 200 && !confined.text.contains("campaign new-podcast"), "\(path)")
            }
        }
    }
}
