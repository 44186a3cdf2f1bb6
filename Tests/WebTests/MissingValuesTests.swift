import Foundation
import Model
import TestSupport
import Testing

@testable import Web

/// A scheduled campaign whose variables have no value: everywhere the pages say that it will fail.
@Suite(.timeLimit(.minutes(10)))
struct MissingValuesTests {
    @Test func `the campaign, the calendar and Health say so until the file has a value`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let empty = WebScene.scheduledText.replacing("title: Morning", with: "title: \"\"")
            try scene.folder.write(empty, to: "campaigns/morning.yaml")
            let campaign = try await scene.page("/campaigns/morning")
            #expect(campaign.text.contains("{{title}} has no value when the schedule starts the campaign"))
            #expect(campaign.text.contains("will fail: no value for title") && campaign.text.contains("1 error"))
            // A person may still start it with values of their own.
            let form = ["v.title": "Typed", "when": "now"]
            let plan = try await scene.planned(form, of: "/campaigns/morning")
            #expect(plan.text.contains("\(plan.address)/start"))
            let calendar = try await scene.page("/calendar")
            #expect(calendar.text.contains("will fail: no value for title"))
            let list = try await scene.api("GET", "/schedule")
            #expect(list.text.contains("missing_values"), "\(list.text)")
            let health = try await scene.page("/health")
            #expect(health.text.contains(">morning, start 20"))
            #expect(health.text.contains("will fail: no value for title"))
            #expect(!health.text.contains("No problems found"))

            // It may be saved so, as each start may get its values; with a value it is right everywhere.
            let etag = try #require(try await scene.api("GET", "/campaigns/morning").header("etag"))
            let kept = try await scene.api(
                "PUT", "/campaigns/morning", body: empty + "# still\n",
                headers: ["If-Match": etag, "Content-Type": "application/yaml"])
            #expect(kept.status == 200 && kept.text.contains("has no value when the schedule"), "\(kept.text)")
            let saved = try await scene.api(
                "PUT", "/campaigns/morning", body: WebScene.scheduledText,
                headers: ["If-Match": try #require(kept.header("etag")), "Content-Type": "application/yaml"])
            #expect(saved.status == 200, "\(saved.text)")
            for path in ["/campaigns/morning", "/calendar", "/health"] {
                #expect(!(try await scene.page(path)).text.contains("will fail"), "\(path)")
            }
        }
    }
}
