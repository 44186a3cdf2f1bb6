import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// From a campaign to a run by way of the API.
@Suite(.timeLimit(.minutes(10)))
struct StartOperationsTests {
    private func body(_ fields: [String: Any]) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: fields), as: UTF8.self)
    }

    private func start(
        _ scene: WebScene, _ fields: [String: Any], as role: AccessRole = .sender, _ campaign: String = "new-podcast"
    ) async throws -> WebScene.Answer {
        try await scene.api("POST", "/campaigns/\(campaign)/runs", as: role, body: try body(fields))
    }

    @Test func `a plan says who gets what, and its hash starts just that`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let path = "/campaigns/new-podcast/plan"
            let unset = try await scene.api("POST", path, as: .author, body: "{}").result(PlanResult.self)
            #expect(unset.unsetVariables == ["title"])
            #expect(unset.plan == nil)
            let variables = ["title": "The Reef"]
            let plan = try await scene.api("POST", path, as: .author, body: try body(["variables": variables]))
                .result(PlanResult.self)
            #expect(plan.reach == 4)
            #expect(plan.texts.map(\.devices) == [2, 2])
            let hash = try #require(plan.plan)
            let answer = try await start(scene, ["occurrence": "e-1", "variables": variables, "plan": hash])
            #expect(answer.status == 202)
            let started = try answer.result(StartedResult.self)
            #expect(started.isNew)
            #expect(answer.header("location") == "/api/v1/runs/\(started.run.run)")
            #expect(started.run.campaign == "new-podcast")
            #expect(started.run.state == "scheduled")
            let event = try #require(try await scene.store.events(run: started.run.run).first)
            #expect(event.actor.name == "sender (token)")
            #expect(event.files.count == 2)
        }
    }

    @Test func `the same occurrence again is the same run, whatever has become of the file`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let fields: [String: Any] = ["occurrence": "e-1", "variables": ["title": "The Reef"]]
            let first = try await start(scene, fields).result(StartedResult.self)
            try scene.folder.write("campaign: [", to: "campaigns/new-podcast.yaml")
            let again = try await start(scene, fields)
            #expect(again.status == 200)
            #expect(try again.result(StartedResult.self).run.run == first.run.run)
            #expect(try again.result(StartedResult.self).isNew == false)
            #expect(try await start(scene, ["occurrence": "e-2"]).status == 422)
        }
    }

    @Test func `what has changed since the plan is refused, and nothing is sent`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let variables = ["title": "The Reef"]
            let hash = try #require(
                try await scene.api(
                    "POST", "/campaigns/new-podcast/plan", body: try body(["variables": variables])
                ).result(PlanResult.self).plan)
            try scene.folder.write(
                WebScene.templateText.replacing("is out", with: "is here"), to: "templates/new-podcast.yaml")
            let drifted = try await start(scene, ["occurrence": "e-1", "variables": variables, "plan": hash])
            #expect(drifted.status == 409)
            #expect(drifted.problem?.detail.contains("the template has changed") ?? false)
            #expect(try await scene.store.runs(limit: 9).isEmpty)
            let words = try await start(scene, ["occurrence": "e-1", "plan": "p1"])
            #expect(words.problem?.errors?.map(\.pointer) == ["/plan"])
            let guards = try await start(scene, ["occurrence": "e-1", "override_guards": ["max_reech"]])
            #expect(guards.problem?.errors?.map(\.pointer) == ["/override_guards/0"])
            #expect(try await start(scene, ["occurrence": " "]).status == 422)
            #expect(try await start(scene, [:]).problem?.errors?.map(\.pointer) == ["/occurrence"])
            let variable = try await start(scene, ["occurrence": "e-1", "variables": ["titel": "x"]])
            #expect(variable.status == 422)
            #expect(variable.problem?.detail.contains("did you mean \"title\"?") ?? false)
            #expect(try await start(scene, ["occurrence": "e-1"], as: .author).status == 403)
        }
    }

    @Test func `a guard refuses until somebody passes it over by name`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            try scene.folder.write(
                WebScene.campaignText + "guards: {max_reach: 3}\n", to: "campaigns/new-podcast.yaml")
            var fields: [String: Any] = ["occurrence": "e-1", "variables": ["title": "The Reef"]]
            let refused = try await start(scene, fields)
            #expect(refused.status == 409)
            #expect(refused.problem?.detail.contains("guards.max_reach is 3") ?? false)
            fields["override_guards"] = ["max_reach"]
            let started = try await start(scene, fields)
            #expect(started.status == 202)
            let run = try started.result(StartedResult.self).run.run
            #expect(try await scene.store.events(run: run).map(\.kind).contains("guard_overridden"))
        }
    }

    @Test func `an occurrence of the schedule is sent as the daemon would`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            try scene.folder.write(WebScene.scheduledText, to: "campaigns/morning.yaml")
            let today = String(scene.sending.clock.now.iso8601.prefix(10))
            let missed = try await start(scene, ["occurrence": "2020-01-01T02:30"], "morning")
            #expect(missed.status == 409)
            #expect(missed.problem?.detail.contains("was missed") ?? false)
            #expect(try await start(scene, ["occurrence": "2020-01-01T02:30"], "morning").status == 409)
            let early = try await start(scene, ["occurrence": "2099-01-01T02:30"], "morning")
            #expect(early.status == 503)
            #expect(early.problem?.detail.contains("starts at") ?? false)
            #expect(!today.isEmpty)
        }
    }

    @Test func `a payload is rendered for a language or a device`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let path = "/campaigns/new-podcast/render"
            let german = try await scene.api(
                "POST", path, as: .author, body: #"{"locale": "de-AT", "variables": {"title": "Riff"}}"#
            ).result(RenderingResult.self)
            #expect(german.locale == "de")
            #expect(german.payload.contains("Riff ist da."))
            let device = try await scene.api("POST", path, as: .author, body: #"{"device": "install-2"}"#)
                .result(RenderingResult.self)
            #expect(device.locale == "de")
            #expect(device.device?.installationId == "install-2")
            #expect(
                try await scene.api("POST", path, body: #"{"device": "install-2", "locale": "de"}"#).problem?.errors?
                    .map(\.pointer) == ["/device"])
            #expect(try await scene.api("POST", path, body: #"{"device": "nobody"}"#).status == 404)
            #expect(try await scene.api("POST", path, as: .viewer, body: "{}").status == 403)
        }
    }

    @Test func `a test is made for one device and left to the daemon`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let path = "/campaigns/new-podcast/test-send"
            let fields = #"{"device": "install-2", "variables": {"title": "Riff"}}"#
            let answer = try await scene.api("POST", path, as: .author, body: fields)
            #expect(answer.status == 202)
            let run = try answer.result(StartedResult.self).run
            #expect(run.test)
            #expect(run.counts.audience == 1)
            #expect(answer.header("location") == "/api/v1/runs/\(run.run)")
            #expect(try await scene.store.openRuns(for: "daemon", inHand: []).map(\.id) == [run.run])
            // The clock stands still: each is a run of its own.
            #expect(try await scene.api("POST", path, as: .author, body: fields).status == 202)
            let nobody = fields.replacing("install-2", with: "nobody")
            #expect(try await scene.api("POST", path, body: nobody).status == 404)
            #expect(try await scene.api("POST", path, as: .approver, body: fields).status == 403)
        }
    }

    @Test func `nobody sends tests without end`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let path = "/campaigns/new-podcast/test-send"
            let fields = #"{"device": "install-2", "variables": {"title": "Riff"}}"#
            for _ in 1...TestSendLimit.most {
                #expect(try await scene.api("POST", path, as: .author, body: fields).status == 202)
                scene.sending.clock.advance(by: .seconds(1))
            }
            let refused = try await scene.api("POST", path, as: .author, body: fields)
            #expect(refused.status == 429 && refused.header("retry-after") == "590")
            #expect(try refused.result(Problem.self).detail.contains("has sent 10 tests within 10m"))
            #expect(try await scene.api("POST", path, as: .sender, body: fields).status == 202)
            scene.sending.clock.advance(by: .seconds(590))
            #expect(try await scene.api("POST", path, as: .author, body: fields).status == 202)
            #expect(try await scene.api("POST", path, as: .author, body: fields).status == 429)
        }
    }

    @Test(arguments: [nil, "staff"]) func `where runs need signatures a test reaches named devices alone`(
        segment: String?
    ) async throws {
        try await WebScene.with { configuration in
            configuration.approvals = ApprovalRules(rules: [.init(above: 1, needs: 1)])
            configuration.testDevices = segment
        } _: { scene in
            try await scene.addCampaign()
            let staff = try await scene.store.importSegment("staff", mode: .replace, topic: nil)
            try await staff.append([.installation("install-2")])
            _ = try await staff.commit(now: scene.sending.clock.now)
            func test(_ device: String) async throws -> WebScene.Answer {
                try await scene.api(
                    "POST", "/campaigns/new-podcast/test-send", as: .author,
                    body: #"{"device": "\#(device)", "variables": {"title": "Riff"}}"#)
            }
            #expect(try await test("install-1").status == 409)
            let named = try await test("install-2")
            #expect(named.status == (segment == nil ? 409 : 202))
            if segment == nil { #expect(try named.result(Problem.self).detail.contains("test_devices")) }
        }
    }

    @Test func `a device with a name is chosen on the plan's page, and is one that tests may reach`() async throws {
        try await WebScene.with { configuration in
            configuration.approvals = ApprovalRules(rules: [.init(above: 1, needs: 1)])
            configuration.namedTestDevices = ["Anna’s phone": "install-2"]
        } _: { scene in
            try await scene.addCampaign()
            let page = try await scene.page("/campaigns/new-podcast", as: .author)
            #expect(page.text.contains("<option value=\"Anna’s phone\">"))
            let plan = try await scene.planned(["v.title": "Riff"], as: .author)
            #expect(plan.text.contains("<option>Anna’s phone</option>"))
            let other = try await scene.page(
                "\(plan.address)/test-send", as: .author, form: ["device": "install-1", "to": "Anna’s phone"])
            #expect(other.status == 409)
            let sent = try await scene.page(
                "\(plan.address)/test-send", as: .author, form: ["device": "", "to": "Anna’s phone"])
            let address = try #require(sent.header("location"), "\(sent.text)")
            let shown = try await scene.page(String(address.prefix { $0 != "#" }), as: .author)
            #expect(
                shown.text.contains("<option selected>Anna’s phone</option>") && shown.text.contains("to install-2"))
        }
    }

    @Test func `the schedule of some days names the clocks that leave a time out`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            try scene.folder.write(WebScene.scheduledText, to: "campaigns/morning.yaml")
            let answer = try await scene.api("GET", "/schedule?from=2027-03-27&to=2027-03-29", as: .viewer)
            let entries = try answer.result(ScheduleResult.self).occurrences
            #expect(entries.map(\.occurrence) == ["2027-03-27T02:30", "2027-03-28T03:00", "2027-03-29T02:30"])
            #expect(entries.map { $0.clockChanges?.map(\.kind) } == [nil, ["skipped"], nil])
            let autumn = try await scene.api("GET", "/schedule?from=2027-10-31&to=2027-10-31&campaign=morning")
                .result(ScheduleResult.self).occurrences
            #expect(autumn.map { $0.clockChanges?.map(\.kind) } == [["twice"]])
            for query in ["from=2027-13-01", "from=2027-03-02&to=2027-03-01", "from=2027-01-01&to=2027-03-04", "day=x"]
            {
                #expect(try await scene.api("GET", "/schedule?\(query)").status == 422, "\(query)")
            }
            #expect(try await scene.api("GET", "/schedule?from=2027-01-01&to=2027-03-03").status == 200)
            #expect(try await scene.api("GET", "/schedule?campaign=evening").status == 404)
            let other = try await scene.api(
                "GET", "/schedule?from=2027-03-27&to=2027-03-29",
                headers: try await scene.confined(to: "com.example.other"))
            #expect(try other.result(ScheduleResult.self).occurrences.isEmpty)
        }
    }
}
