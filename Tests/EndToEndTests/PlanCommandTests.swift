import APNsSimulator
import Foundation
import TestSupport
import Testing

/// `plan`, and a run that is held to it.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The plan command` {
    private func hash(_ place: Installation, _ more: String...) throws -> String {
        let result = try Program.run(
            ["plan", "new-podcast", "--json"] + Installation.words + more, in: place.folder)
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        return try #require(object?["plan"] as? String, "\(result.output)\n\(result.errors)")
    }

    @Test func `fits a terminal, says who gets what, and how to hold a run to it`() throws {
        let place = try Installation(devices: 12)
        try place.importDevices()
        let plan = try Program.run(["plan", "new-podcast"] + Installation.words, in: place.folder)
        #expect(plan.status == 0, "\(plan.errors)")
        let lines = plan.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count < 45)
        #expect(lines.filter { !$0.contains("{\"aps\"") }.allSatisfy { $0.count <= 100 })
        #expect(lines.count { $0.contains("{\"aps\"") } == 1)
        #expect(plan.output.contains("12 devices"))
        #expect(plan.output.contains("de-AT 12"))
        #expect(plan.output.contains("5,000/s"))
        #expect(plan.output.contains(try hash(place)))
        let samples = try Program.run(["plan", "new-podcast", "--samples"] + Installation.words, in: place.folder)
        #expect(samples.output.split(separator: "\n").count { $0.contains("{\"aps\"") } == 8)
        let unset = try place.fanfare("plan", "new-podcast")
        #expect(unset.output.contains("--var link_url=... --var title=..."))
        #expect(!unset.output.contains("p2-"))
    }

    @Test func `devices under another topic are named with the topic to import them under`() throws {
        let place = try Installation(devices: 4)
        try place.importDevices()
        try place.folder.write(
            "campaign: call\ntopic: \(Installation.topic)\npush_type: voip\ntemplate: refresh-episodes\n"
                + "variables: {reason: x}\naudience: segment(\"podcast-fans\")\n", to: "campaigns/call.yaml")
        let words =
            "no device is registered under \(Installation.topic).voip, which voip pushes need; registered: 4 under "
            + "\(Installation.topic). Import the tokens that the app gets for voip pushes with topic \(Installation.topic).voip"
        let checked = try place.fanfare("validate", "campaigns/call.yaml")
        #expect(checked.output.contains("campaigns/call.yaml:3:1: warning: \(words)"), "\(checked.output)")
        #expect(checked.status == 0)
        let plan = try place.fanfare("plan", "call")
        #expect(
            plan.output.split(whereSeparator: \.isWhitespace).joined(separator: " ").contains(words), "\(plan.output)")
        #expect(try place.fanfare("plan", "call", "--json").output.contains(#""\#(Installation.topic)" : 4"#))
        #expect(try place.fanfare("schema", "campaign").output.contains("com.example.app.voip"))
        #expect(try place.fanfare("devices", "import", "--help").output.contains("com.example.app.voip"))
        // One that is where it should be, and the others are left alone.
        try place.folder.write(
            "token,environment,topic\n\(String(repeating: "ef", count: 32)),production,\(Installation.topic).voip\n",
            to: "voip.csv")
        #expect(try place.fanfare("devices", "import", "voip.csv").status == 0)
        #expect(try !place.fanfare("validate", "campaigns/call.yaml").output.contains("no device is registered"))
        #expect(try place.fanfare("plan", "call").output.contains("no device of the audience is registered under"))
        #expect(try place.fanfare("plan", "call").output.contains("No device"))
    }

    /// What is done to a fresh store with four devices, and why nobody is reached then.
    static let nobody: [(audience: String, change: String?, reason: String, words: String)] = [
        (#"locale in ("tlh")"#, nil, "no_device_matches", #"matches the audience locale in ("tlh")"#),
        ("everyone", "DELETE FROM device", "no_device", "no device is registered under"),
        ("everyone", "UPDATE device SET alerts_allowed = 0", "all_left_out", "are left out: alerts_not_allowed 4"),
        ("everyone", "UPDATE topic SET name = name || '.voip'", "other_topic", ".voip. Import the tokens"),
    ]

    @Test(arguments: nobody.indices) func `a run that reaches nobody says so and why, and exits 3`(index: Int) throws {
        let row = Self.nobody[index]
        let place = try Installation(devices: 4)
        #expect(try place.fanfare("devices", "import", "devices.csv").status == 0)
        if let change = row.change { try place.change(change) }
        try place.folder.write(
            "campaign: quiet\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: breaking-news\n"
                + "variables: {headline: h, link_url: \"https://example.com\"}\n"
                + "audience: \(row.audience)\n", to: "campaigns/quiet.yaml")
        let plan = try place.fanfare("plan", "quiet")
        #expect(plan.status == 0, "\(plan.errors)")
        let page = plan.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(page.contains("No device") && page.contains(row.words), "\(plan.output)")
        #expect(try place.fanfare("plan", "quiet", "--json").output.contains(#""reason" : "\#(row.reason)""#))
        let run = try place.run("quiet", "--occurrence", "a")
        #expect(run.status == 3 && run.errors.contains("no device is reached: "), "\(run.errors)")
        #expect(run.errors.contains("run 1 finished without a push: no device was reached: "), "\(run.errors)")
        #expect(run.errors.contains(row.words), "\(run.errors)")
        let json = try place.run("quiet", "--occurrence", "b", "--json")
        #expect(json.status == 3 && json.output.contains(#""reason" : "\#(row.reason)""#), "\(json.output)")
        #expect(place.simulator.counts().requests == 0)
        try place.configure(more: "success: {min_accepted: 0}")
        #expect(try place.run("quiet", "--occurrence", "c").status == 0)
    }

    @Test func `a run that reaches somebody says nothing of nobody`() throws {
        let place = try Installation(devices: 4)
        try place.importDevices()
        let run = try place.run("new-podcast", "--json")
        #expect(!run.errors.contains("nobody") && !run.output.contains("nobody"), "\(run.output) \(run.errors)")
    }

    @Test func `a run held to a plan sends just that`() throws {
        let place = try Installation(devices: 5)
        try place.importDevices()
        let run = try place.run("new-podcast", "--plan", try hash(place))
        #expect(run.status == 0, "\(run.errors)")
        #expect(place.simulator.counts().accepted == 5)
    }

    @Test func `after a change of template, file, values or audience it exits 3 and says which`() throws {
        let place = try Installation(devices: 5)
        try place.importDevices()
        let planned = try hash(place)
        func expectDrift(_ words: String, _ arguments: [String], sourceLocation: SourceLocation = #_sourceLocation)
            throws
        {
            let result = try Program.run(
                ["run", "new-podcast", "--yes", "--plan", planned] + arguments, in: place.folder)
            #expect(result.status == 3, "\(result.errors)", sourceLocation: sourceLocation)
            #expect(result.errors.contains(words), "\(result.errors)", sourceLocation: sourceLocation)
        }
        let template = try place.folder.read("templates/new-podcast.yaml")
        try place.folder.write(template.replacing("ist da", with: "ist hier"), to: "templates/new-podcast.yaml")
        try expectDrift("the template has changed", Installation.words)
        try place.folder.write("# a comment changes nothing\n" + template, to: "templates/new-podcast.yaml")
        try expectDrift("the variables have changed", Installation.words + ["--var", "show=Other"])
        let campaign = try place.folder.read("campaigns/new-podcast.yaml")
        try place.folder.write(
            campaign.replacing("priority: 10", with: "priority: 5"), to: "campaigns/new-podcast.yaml")
        try expectDrift("the campaign file has changed", Installation.words)
        try place.folder.write(campaign, to: "campaigns/new-podcast.yaml")
        try place.folder.write("installation_id\ninstall-4\n", to: "fans.csv")
        #expect(try place.fanfare("segments", "import", "podcast-fans", "fans.csv", "--remove").status == 0)
        try expectDrift("4 devices, 20 % fewer than the 5 planned", Installation.words)
        #expect(place.simulator.counts().requests == 0)
        #expect(try place.run("new-podcast", "--plan", "p1-nonsense").status == 64)
        #expect(try place.run("new-podcast", "--plan", try hash(place)).status == 0)
        #expect(place.simulator.counts().accepted == 4)
    }

    @Test func `a guard refuses plan and run, --yes does not help, its override does and is counted`() throws {
        let place = try Installation(devices: 6)
        try place.importDevices()
        let campaign = try place.folder.read("campaigns/new-podcast.yaml")
        try place.folder.write(
            campaign.replacing("max_reach: 2000000", with: "max_reach: 5"), to: "campaigns/new-podcast.yaml")
        for result in [
            try Program.run(["plan", "new-podcast"] + Installation.words, in: place.folder),
            try place.run("new-podcast"), try place.run("new-podcast", "--override-guard", "min_reach"),
        ] {
            #expect(result.status == 3)
            let words = result.output + result.errors
            #expect(words.contains("6 devices"))
            #expect(words.contains("max_reach is 5"))
            #expect(words.contains("--override-guard max_reach"))
        }
        #expect(place.simulator.counts().requests == 0)
        let misspelt = try place.run("new-podcast", "--override-guard", "max-reach")
        #expect(misspelt.status == 64 && misspelt.errors.hasPrefix("error: "), "\(misspelt.errors)")
        // What is refused all the same is not offered.
        let help = try place.fanfare("run", "--help").output
        #expect(help.contains("max_growth") && !help.contains("test_template"), "\(help)")
        let run = try place.run("new-podcast", "--override-guard", "max_reach")
        #expect(run.status == 0, "\(run.errors)")
        #expect(place.simulator.counts().accepted == 6)
    }

    @Test func `the next plan says what is different from the last run`() throws {
        let place = try Installation(devices: 6)
        try place.importDevices()
        #expect(try place.run("new-podcast").status == 0)
        let template = try place.folder.read("templates/new-podcast.yaml")
        try place.folder.write(template.replacing("ist da", with: "ist hier"), to: "templates/new-podcast.yaml")
        let plan = try Program.run(["plan", "new-podcast"] + Installation.words, in: place.folder)
        #expect(plan.output.contains("Since run 1"))
        #expect(plan.output.contains("6 devices, as then"))
        #expect(plan.output.contains("de: body"))
    }
}
