import CampaignFiles
import Foundation
import Model
import Testing

struct JSONSchemaTests {
    private static func schema(_ file: JSONSchema.File) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(JSONSchema.text(for: file).utf8))
        return try #require(object as? [String: Any])
    }

    @Test(arguments: JSONSchema.File.allCases) func `a schema names its draft and ends with a line`(
        file: JSONSchema.File
    ) throws {
        #expect(try Self.schema(file)["$schema"] as? String == "https://json-schema.org/draft/2020-12/schema")
        #expect(JSONSchema.text(for: file).hasSuffix("}\n"))
    }

    /// Everything under any `properties`, with its path.
    private static func properties(in schema: Any, _ path: String = "") -> [(path: String, value: [String: Any])] {
        if let list = schema as? [Any] { return list.flatMap { properties(in: $0, path) } }
        guard let schema = schema as? [String: Any] else { return [] }
        let own = (schema["properties"] as? [String: Any] ?? [:]).flatMap { name, value in
            [("\(path).\(name)", value as? [String: Any] ?? [:])] + properties(in: value, "\(path).\(name)")
        }
        return own
            + ["anyOf", "items", "additionalProperties"].compactMap { schema[$0] }.flatMap {
                properties(in: $0, path)
            }
    }

    @Test(arguments: [(JSONSchema.File.campaign, 35), (.template, 35), (.configuration, 22)])
    func `every key has a description`(file: JSONSchema.File, countMin: Int) throws {
        let properties = Self.properties(in: try Self.schema(file))
        #expect(properties.count >= countMin)
        for (path, value) in properties {
            let text = value["description"] as? String ?? ""
            #expect(text.hasSuffix("."), "\(path)")
        }
    }

    @Test(arguments: [
        ("campaigns", JSONSchema.File.campaign), ("templates", .template), ("systemd", .configuration),
    ])
    func `the example files pass`(folder: String, file: JSONSchema.File) throws {
        let schema = try Self.schema(file)
        let paths = try Files.paths(in: Files.project.appending(path: folder), ending: ".yaml")
        #expect(!paths.isEmpty)
        for path in paths { #expect(SchemaCheck.problems(of: try Files.text(path), against: schema) == [], "\(path)") }
    }

    /// What only `validate` can know is not a schema's to say, but it must never refuse a right file.
    @Test func `no file without errors is refused`() throws {
        var passed = 0
        for name in try BadFileTests.names where !name.hasPrefix("whole") {
            let text = try Files.text(Files.fixtures.appending(path: "bad/\(name).yaml").path)
            let file: JSONSchema.File =
                name.hasPrefix("template") ? .template : name.hasPrefix("campaign") ? .campaign : .configuration
            let expected = try Files.text(Files.fixtures.appending(path: "bad/\(name).expected").path)
            guard !expected.contains("error:") else { continue }
            passed += 1
            #expect(SchemaCheck.problems(of: text, against: try Self.schema(file)) == [], "\(name)")
        }
        #expect(passed >= 4)
    }

    private static let head = "campaign: a\ntopic: com.example.a\npush_type: alert\ntemplate: a\naudience: everyone\n"

    @Test(arguments: [
        ("expires_after: 0", true), ("expires_after: 1h30m", true), ("expires_after: 90", false),
        ("expires_after: soon", false), ("priority: 5", true), ("priority: 7", false), ("holdout: 2.5%", true),
        ("holdout: 2", false), ("variables: {a: 1, b: , c: no, d: \"x\"}", true), ("variables: {a b: 1}", false),
        ("variables: {a: [1]}", false), ("guards: {max_reach: 2_000_000, min_reach: 0}", true),
        ("guards: {max_reach: 0}", false), ("guards: {max_reech: 1}", false), ("pace: {ramp: 2m}", false),
        ("pace: {rate: 300/m, ramp: 2m}", true), ("pace: {rate: 300}", false), ("audiance: everyone", false),
        ("schedule: {cron: \"0 9 * * MON-FRI\", zone: recipient}", true), ("schedule: {cron: \"0 9 * *\"}", false),
        ("schedule: {at: 2026-12-01T09:00, zone: Europe/Berlin, missed_zone: next_day}", true),
        ("schedule: {missed_zone: tomorrow}", false),
        ("schedule: {quiet_hours: {from: 22:00, to: \"08:00\", policy: drop}}", true),
        ("variants: {a: {weight: 1, template: b}}", true), ("variants: {a: {weight: 1}}", false),
        ("collapse: run", true), ("retry: {max_attempts: 3}", true), ("retry: {max_attempts: 21}", false),
    ])
    func `an editor sees the plain mistakes of a campaign`(line: String, isRight: Bool) throws {
        let problems = SchemaCheck.problems(of: Self.head + line, against: try Self.schema(.campaign))
        #expect(problems.isEmpty == isRight, "\(problems)")
    }

    @Test(arguments: [
        ("alert: {en: {title: A}, pt_br: {body: yes}}", true), ("alert: {loc_key: A, loc_args: [\"{{x}}\", 1]}", true),
        ("alert: {english: {title: A}}", false), ("alert: {en: {titel: A}}", false), ("alert: A", false),
        ("badge: +1", true), ("badge: 3", true), ("badge: one", false), ("sound: default", true),
        ("sound: {critical: 1, volume: 0.5}", true), ("sound: {critical: 2}", false), ("link_url: a", false),
        ("custom: {a: {b: [1, null, {c: true}]}}", true), ("mutable_content: yes", false), ("stale_date: +2h", true),
        ("event: end\ndismissal_date: 0", true), ("dismissal_date: later", false), ("event: stop", false),
        ("default_locale: no", true),
    ])
    func `an editor sees the plain mistakes of a template`(line: String, isRight: Bool) throws {
        let problems = SchemaCheck.problems(of: "template: a\n" + line, against: try Self.schema(.template))
        #expect(problems.isEmpty == isRight, "\(problems)")
    }

    @Test(arguments: [
        ("{team_id: DEF123GHIJ, keys: {sandbox: {key_id: ABC123DEFG, key_path: a.p8}}}", true),
        ("{team_id: DEF123GHIJ, keys: {sandbox: {key_id: ABC123DEFG}}}", false),
        ("{team_id: DEF123GHIJ, keys: {development: {key_id: ABC123DEFG, key_path: a.p8}}}", false),
        ("{team_id: DEF123GHIJ, key_id: ABC, key_path: a.p8}", false),
    ])
    func `an editor sees the plain mistakes of a configuration`(app: String, isRight: Bool) throws {
        let text = "store: a.sqlite\napps:\n  - {topic: com.example.a, \(app.dropFirst())\n"
        let problems = SchemaCheck.problems(of: text, against: try Self.schema(.configuration))
        #expect(problems.isEmpty == isRight, "\(problems)")
    }
}
