import APNsSimulator
import Foundation
import TestSupport
import Testing

/// What a content team uses before anything is sent to many.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Commands for editors` {
    @Test func `init writes files that validate finds right, and never writes over any`() throws {
        let folder = try TemporaryDirectory()
        let first = try Program.run(["init", "new"], in: folder)
        #expect(first.status == 0, "\(first.errors)")
        for name in ["fanfare.yaml", "campaigns/new-podcast.yaml", "templates/new-podcast.yaml"] {
            #expect(try folder.read("new/\(name)").contains("# "), "\(name) has no comments")
            #expect(first.output.contains("wrote new/\(name)"))
        }
        let configuration = try folder.read("new/fanfare.yaml")
        #expect(configuration.contains("key_path: keys/"))
        #expect(configuration.contains("LoadCredential=keys:/etc/fanfare/keys in the unit"))
        let checked = try Program.run(["validate", "--config", "new/fanfare.yaml"], in: folder)
        #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
        #expect(checked.output.contains("campaigns/new-podcast.yaml: ok"))
        try folder.write("mine", to: "new/fanfare.yaml")
        try FileManager.default.removeItem(atPath: folder.path + "/new/campaigns/new-podcast.yaml")
        let second = try Program.run(["init", "new/"], in: folder)
        #expect(second.status == 65)
        #expect(second.errors.contains("new/fanfare.yaml"))
        #expect(try folder.read("new/fanfare.yaml") == "mine")
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/new/campaigns/new-podcast.yaml"))
    }

    @Test func `validate names what is wrong with the configuration that should say where the templates are`() throws {
        let folder = try TemporaryDirectory()
        _ = try Program.run(["init", "new"], in: folder)
        try folder.write(try folder.read("new/campaigns/new-podcast.yaml"), to: "elsewhere/c.yaml")
        try folder.write("stor: here.sqlite\n", to: "fanfare.yaml")
        let result = try Program.run(["validate", "elsewhere/c.yaml"], in: folder)
        #expect(result.status == 78)
        #expect(result.errors.contains("fanfare.yaml:1:1: error:"), "\(result.errors)")
    }

    @Test(arguments: [("campaign", "audience"), ("template", "default_locale"), ("config", "silent_budget")])
    func `schema prints JSON Schema with the keys of the file`(kind: String, key: String) throws {
        let folder = try TemporaryDirectory()
        let result = try Program.run(["schema", kind], in: folder)
        #expect(result.status == 0, "\(result.errors)")
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        let schema = try #require(object)
        #expect(schema["$schema"] as? String == "https://json-schema.org/draft/2020-12/schema")
        #expect(schema["additionalProperties"] as? Bool == false)
        #expect(result.output.contains("\"\(key)\""))
    }

    @Test(arguments: ["bash", "zsh", "fish"]) func `completion scripts know the commands`(shell: String) throws {
        let script = try Program.run(["--generate-completion-script", shell], in: try TemporaryDirectory())
        #expect(script.status == 0)
        for word in ["test-send", "override-guard", "segments"] { #expect(script.output.contains(word)) }
    }

    @Test func `render shows a device its own bytes and headers`() throws {
        let place = try Installation(devices: 2)
        try place.importDevices()
        try place.folder.write(
            #"""
            template: refresh-episodes
            custom: {reason: "{{reason}}", who: "{{device.installation_id}} \"quoted\"", lang: "{{device.locale}}"}

            """#,
            to: "templates/refresh-episodes.yaml")
        let result = try place.fanfare("render", "refresh-episodes", "--device", "install-1")
        #expect(result.status == 0, "\(result.errors)")
        let payload =
            #"{"aps":{"content-available":1},"reason":"new-episode","who":"install-1 \"quoted\"","lang":"de-AT"}"#
        #expect(result.output == payload + "\n")
        for word in [
            "\(payload.utf8.count) of 4096 bytes", "apns-push-type: background", "apns-priority: 5",
            "apns-topic: \(Installation.topic)", "…\(place.tokens[1].suffix(8))",
        ] {
            #expect(result.errors.contains(word), "\(word) is missing in \(result.errors)")
        }
        #expect(!(result.output + result.errors).contains(place.tokens[1]))
        #expect(try place.fanfare("render", "refresh-episodes", "--device", "nobody").status == 66)
        #expect(try place.fanfare("render", "refresh-episodes", "--device", "x", "--locale", "de").status == 64)
        #expect(try place.fanfare("render", "refresh-episodes", "--variant", "b").status == 66)
    }

    @Test func `render is what test-send sends, marked as a test and in no report of the campaign`() throws {
        let place = try Installation(devices: 3) { $0.logsPayloads = true }
        try place.importDevices()
        let rendered = try Program.run(
            ["render", "new-podcast", "--device", "install-2"] + Installation.words, in: place.folder)
        let sent = try Program.run(
            ["test-send", "new-podcast", "--device", "install-2"] + Installation.words, in: place.folder)
        #expect(sent.status == 0, "\(sent.errors)")
        #expect(sent.output.contains("accepted"))
        let log = place.simulator.log()
        #expect(log.map(\.token) == [place.tokens[2]])
        #expect(log.map { String(decoding: $0.payload ?? [], as: UTF8.self) } == [rendered.output.dropLast() + ""])
        #expect(try place.fanfare("report", "new-podcast").status == 66)
        let report = try place.fanfare("report", "1")
        #expect(report.output.contains("a test"))
        #expect(try place.fanfare("report", "1", "--check").output.contains("The counts balance."))
        let unset = try place.fanfare("test-send", "new-podcast", "--device", "install-2")
        #expect(unset.status == 65)
        #expect(place.simulator.log().count == 1)
    }

    @Test func `test-send of a background push says that it uses the silent budget, and does`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        for _ in 1...3 {
            let sent = try place.fanfare("test-send", "refresh-episodes", "--device", "install-0")
            #expect(sent.status == 0, "\(sent.errors)")
            #expect(sent.errors.contains("it uses one of the 3"))
        }
        let refused = try place.fanfare("test-send", "refresh-episodes", "--device", "install-0")
        #expect(refused.status == 3)
        #expect(refused.output.contains("silent_budget"))
        #expect(place.simulator.counts().accepted == 3)
    }

    @Test func `test-send to a token that APNs refuses says so and exits 65`() throws {
        let place = try Installation(devices: 1)
        let token = String(repeating: "cd", count: 32)
        try place.folder.write(
            "token,environment,topic,installation_id\n\(token),production,\(Installation.topic),stranger\n",
            to: "devices.csv")
        #expect(try place.fanfare("devices", "import", "devices.csv").status == 0)
        let sent = try place.fanfare("test-send", "refresh-episodes", "--device", "stranger")
        #expect(sent.status == 65, "\(sent.output)\(sent.errors)")
        #expect(sent.output.contains("400 BadDeviceToken"))
    }
}
