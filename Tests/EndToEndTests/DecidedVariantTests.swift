import APNsSimulator
import Foundation
import TestSupport
import Testing

/// A share of the audience decides which text the rest gets: from the file to the texts that the simulator received.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A variant that opens decide` {
    private static let devices = 400

    private func place() throws -> Installation {
        let place = try Installation(devices: Self.devices) { options in
            options.logsPayloads = true
        }
        try place.importDevices()
        for name in ["long", "short"] {
            try place.folder.write(
                "template: \(name)\ndefault_locale: en\nalert: {en: {body: \"This is the \(name) text\"}}\n",
                to: "templates/\(name).yaml")
        }
        try place.folder.write(
            """
            campaign: weekend
            topic: \(Installation.topic)
            push_type: alert
            template: long
            audience: everyone
            expires_after: 4h
            feedback: true
            variants:
              long: {weight: 1, template: long}
              short: {weight: 1, template: short}
            decide: {by: opens, after: 2m, share: 50%}

            """, to: "campaigns/weekend.yaml")
        return place
    }

    /// The texts that the simulator accepted, with the reference of each.
    private func sent(_ place: Installation) throws -> [(isShort: Bool, reference: String)] {
        try place.simulator.log().filter { $0.status == 200 }.map { entry in
            let payload = try #require(entry.payload)
            let object = try JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any]
            let fanfare = try #require(object?["fanfare"] as? [String: Any])
            let text = String(decoding: payload, as: UTF8.self)
            return (text.contains("the short text"), try #require(fanfare["r"] as? String))
        }
    }

    /// Sends the share, reports opens of so many devices of each text, and lets the time pass.
    private func compare(_ place: Installation, long: Int, short: Int) throws -> [(isShort: Bool, reference: String)] {
        let run = try RunningProgram(["run", "weekend", "--occurrence", "1", "--yes"], in: place.folder)
        try run.wait {
            (try? place.fanfare("status", "weekend", "--json").output)?.contains("\"holds_until\"") == true
        }
        run.signal(SIGTERM)
        _ = try run.finish()
        let first = try sent(place)
        let opened =
            first.filter { !$0.isShort }.prefix(long).map(\.reference)
            + first.filter(\.isShort).prefix(short).map(\.reference)
        let lines = opened.enumerated().map { number, reference in
            "{\"id\":\"00000000-0000-4000-8000-" + String(format: "%012d", number)
                + "\",\"type\":\"opened\",\"ref\":\"\(reference)\"}"
        }
        try place.folder.write(lines.joined(separator: "\n") + "\n", to: "reports.jsonl")
        let imported = try place.fanfare("events", "import", "reports.jsonl")
        #expect(imported.output.contains("\(long + short) recorded"), "\(imported.errors)\(imported.output)")
        try place.change(
            """
            UPDATE run_stage SET decision = json_set(decision, '$.at', json_extract(decision, '$.at') - 121000)
            WHERE stage = 0
            """)
        return first
    }

    private func stage(_ place: Installation) throws -> [String: Any] {
        let text = try place.fanfare("status", "weekend", "--json").output
        let run = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        return try #require((run["stages"] as? [[String: Any]])?.first)
    }

    @Test func `the rest gets the text that was opened more`() throws {
        let place = try place()
        let plan = try place.fanfare("plan", "weekend")
        let words = plan.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(words.contains("2m later the rest gets the variant that was opened more"), "\(plan.output)")
        let first = try compare(place, long: 2, short: 40)
        let run = try place.fanfare("run", "weekend", "--occurrence", "1", "--yes")
        #expect(run.status == 0, "\(run.errors)")
        let all = try sent(place)
        #expect(all.count == Self.devices && all.dropFirst(first.count).allSatisfy(\.isShort))
        let decided = try #require(try stage(place)["variants"] as? [String: Any])
        #expect(decided["variant"] as? String == "short" && decided["cause"] as? String == "winner")
        let text = try place.fanfare("report", "weekend").output
        #expect(text.contains("the rest gets short"), "\(text)")
        let long = first.count { !$0.isShort }
        let table = try place.fanfare("report", "weekend", "--format", "csv", "--table", "variants").output
        #expect(table.contains("long,\(long),") && table.contains("short,\(Self.devices - long),"), "\(table)")
        let verified = try place.fanfare("verify")
        #expect(verified.status == 0, "\(verified.output)")
        try place.change("UPDATE delivery SET variant = 0 WHERE stage IS NULL")
        let tampered = try place.fanfare("verify")
        #expect(tampered.status != 0 && tampered.output.contains("with another variant"), "\(tampered.output)")
    }

    @Test func `without a winner a person chooses`() throws {
        let place = try place()
        let first = try compare(place, long: 10, short: 11)
        let waiting = try place.fanfare("run", "weekend", "--occurrence", "1", "--yes")
        #expect(waiting.status == 76 && waiting.errors.contains("--variant NAME"), "\(waiting.errors)")
        let unnamed = try place.fanfare("approve", "weekend", "--stage", "2")
        #expect(unnamed.status != 0 && unnamed.errors.contains("sends long or short"), "\(unnamed.errors)")
        let unknown = try place.fanfare("approve", "weekend", "--variant", "shirt")
        #expect(unknown.status != 0 && unknown.errors.contains("use one of long, short"), "\(unknown.errors)")
        let chosen = try place.fanfare("approve", "weekend", "--variant", "short")
        #expect(chosen.status == 0, "\(chosen.errors)")
        #expect(try place.fanfare("run", "weekend", "--occurrence", "1", "--yes").status == 0)
        #expect(try sent(place).dropFirst(first.count).allSatisfy(\.isShort))
        #expect(try stage(place)["variants"].map { ($0 as? [String: Any])?["cause"] as? String } == "person")
        #expect(try place.fanfare("audit").output.contains("chose short for the rest"))
    }
}
