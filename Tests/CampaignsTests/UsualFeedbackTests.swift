import Campaigns
import Foundation
import Model
import TestSupport
import Testing

/// The feedback that an app's campaigns have, unless their files say something else.
struct UsualFeedbackTests {
    private let folder: TemporaryDirectory
    private let configuration: Configuration

    init() throws {
        folder = try TemporaryDirectory()
        _ = try folder.write("template: long\nalert: {en: {title: Hello}}\n", to: "templates/long.yaml")
        _ = try folder.write(
            "template: raw\ncustom: {fanfare: x}\nalert: {en: {title: Hello}}\n", to: "templates/raw.yaml")
        _ = try folder.write("template: silent\n", to: "templates/silent.yaml")
        for (name, lines) in [
            ("says-nothing", "push_type: alert\ntemplate: long\n"),
            ("says-no", "push_type: alert\ntemplate: long\nfeedback: false\n"),
            ("says-more", "push_type: alert\ntemplate: long\nfeedback: {arrivals: 5%}\n"),
            ("wakes", "push_type: background\ntemplate: silent\n"),
        ] {
            _ = try folder.write(
                "campaign: \(name)\ntopic: com.example.a\n\(lines)expires_after: 1h\naudience: everyone\n",
                to: "campaigns/\(name).yaml")
        }
        var app = Configuration.App(
            topic: "com.example.a", credential: .key(teamID: "TEAM", keyID: "KEY", path: "key.p8"))
        app.feedback = CampaignFeedback(arrivalsPercent: 1)
        configuration = Configuration(
            store: "s", campaigns: "\(folder.path)/campaigns", templates: "\(folder.path)/templates", apps: [app])
    }

    private static func percents(_ catalogue: CampaignCatalogue) -> [String: Double?] {
        Dictionary(
            uniqueKeysWithValues: catalogue.ready.map { ready in
                (ready.campaign.name, ready.campaign.feedback.map { $0.arrivalsPercent ?? 0 })
            })
    }

    @Test func `a campaign that does not say has its app's feedback, in the schedule and in a run's definition`() throws
    {
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration)
        #expect(Self.percents(catalogue) == ["says-nothing": 1, "says-no": nil, "says-more": 5, "wakes": 1])
        for (name, percent) in Self.percents(catalogue) {
            let definition = try CampaignSource.load(name, configuration).definition(
                plannedAt: Timestamp(seconds: 1_800_000_000))
            #expect(definition.campaign.feedback.map { $0.arrivalsPercent ?? 0 } == percent, "\(name)")
        }
    }

    @Test func `a change of the app's feedback reads the files again`() throws {
        var catalogue = CampaignCatalogue()
        #expect(catalogue.refresh(configuration).count == 4)
        #expect(catalogue.refresh(configuration).isEmpty)
        var changed = configuration
        changed.apps[0].feedback = nil
        #expect(catalogue.refresh(changed).count == 4)
        #expect(Self.percents(catalogue) == ["says-nothing": nil, "says-no": nil, "says-more": 5, "wakes": nil])
    }

    @Test func `validate finds what the app's feedback does not fit`() throws {
        _ = try folder.write(
            "campaign: raw\ntopic: com.example.a\npush_type: alert\ntemplate: raw\nexpires_after: 1h\naudience: everyone\n",
            to: "campaigns/raw.yaml")
        let check = CampaignCheck.check(
            path: "\(folder.path)/campaigns/raw.yaml", templatesFolder: configuration.templates,
            usualFeedback: configuration.usualFeedback)
        #expect(check.diagnostics.contains { $0.what.contains("custom key \"fanfare\"") }, "\(check.diagnostics)")
        let without = CampaignCheck.check(
            path: "\(folder.path)/campaigns/raw.yaml", templatesFolder: configuration.templates, usualFeedback: [:])
        #expect(!without.diagnostics.contains { $0.what.contains("custom key") }, "\(without.diagnostics)")
    }

    @Test(arguments: [
        "schedule: {cron: \"0 8 * * *\", zone: recipient, unknown_zone: UTC, best_hour: {until: \"21:00\"}}\n",
        "stages:\n  - {share: 5%, hold: 30m, opens_at_least: 50% of usual}\n  - {rest: true}\n",
        "variants:\n  a: {weight: 1, template: long}\n  b: {weight: 1, template: other}\n"
            + "decide: {by: opens, after: 30m, share: 20%}\n",
    ])
    func `what needs opens has them from the app, unless the campaign declines`(lines: String) throws {
        let path = "\(folder.path)/campaigns/needs.yaml"
        _ = try folder.write("template: other\nalert: {en: {title: Hi}}\n", to: "templates/other.yaml")
        func problems(_ more: String, _ feedback: [String: CampaignFeedback]) throws -> [String] {
            _ = try folder.write(
                "campaign: needs\ntopic: com.example.a\npush_type: alert\ntemplate: long\nexpires_after: 1h\n"
                    + "audience: everyone\n\(lines)\(more)", to: "campaigns/needs.yaml")
            return CampaignCheck.check(
                path: path, templatesFolder: configuration.templates, usualFeedback: feedback
            ).diagnostics.filter { $0.severity == .error }.map(\.description)
        }
        let usual = configuration.usualFeedback
        #expect(try problems("", usual).isEmpty)
        #expect(try problems("feedback: true\n", [:]).isEmpty)
        for (more, feedback) in [("", [:]), ("feedback: false\n", usual)] {
            let found = try problems(more, feedback)
            #expect(found.count == 1 && found.first?.contains("add feedback: true") == true, "\(found)")
        }
        _ = try problems("", usual)
        #expect(try CampaignSource.load("needs", configuration).campaign.feedback?.arrivalsPercent == 1)
    }
}
