import APNsSimulator
import Foundation
import TestSupport
import Testing

/// People with several devices, and campaigns that send them one copy.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `One copy for a user` {
    private static let people = 20

    /// Each has a phone, a tablet and a watch, seen in turn; five more devices have nobody.
    private func place(store: String) throws -> Installation {
        let place = try Installation(devices: Self.people * 3 + 5, store: store)
        let lines = place.tokens.enumerated().map { number, token in
            let person = number < Self.people * 3 ? "person-\(number / 3)" : ""
            let day = number % 3 == (number / 3) % 3 ? "21" : "20"
            return "\(token),production,\(Installation.topic),install-\(number),\(person),2026-11-\(day)T00:00:00Z\n"
        }
        try place.folder.write(
            "token,environment,topic,installation_id,user_id,last_seen_at\n" + lines.joined(), to: "devices.csv")
        let imported = try place.fanfare("devices", "import", "devices.csv")
        try #require(imported.status == 0, "\(imported.errors)")
        try place.folder.write(
            "template: news\ndefault_locale: en\nalert: {en: {body: News}}\n", to: "templates/news.yaml")
        try write("dedupe: user\n", to: place)
        return place
    }

    private func write(_ more: String, to place: Installation) throws {
        try place.folder.write(
            """
            campaign: news
            topic: \(Installation.topic)
            push_type: alert
            template: news
            audience: everyone
            expires_after: 1h
            \(more)
            """, to: "campaigns/news.yaml")
    }

    private func hash(_ place: Installation) throws -> String {
        let plan = try place.fanfare("plan", "news", "--json")
        try #require(plan.status == 0, "\(plan.errors)")
        let json = try #require(try JSONSerialization.jsonObject(with: Data(plan.output.utf8)) as? [String: Any])
        return try #require(json["plan"] as? String)
    }

    @Test(arguments: StoreKind.available)
    func `goes to the device seen last, as planned, counted and explained`(kind: StoreKind) async throws {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try place(store: store)
            let plan = try place.fanfare("plan", "news")
            #expect(plan.output.contains("25 devices, of 65 that the audience selects"), "\(plan.output)")
            #expect(plan.output.contains("duplicate_of_user 40"))
            let run = try place.fanfare("run", "news", "--yes", "--plan", try hash(place))
            #expect(run.status == 0, "\(run.errors)")

            let got = Set(place.simulator.log().map(\.token))
            let expected = place.tokens.enumerated().filter { number, _ in
                number >= Self.people * 3 || number % 3 == (number / 3) % 3
            }
            #expect(got == Set(expected.map(\.element)) && place.simulator.log().count == 25)
            #expect(try place.fanfare("report", "1").output.contains("duplicate_of_user"))
            #expect(try place.fanfare("report", "1", "--check").output.contains("The counts balance."))
            let told = try place.fanfare("explain", "install-1")
            #expect(told.output.contains("another device of the same user was selected (dedupe: user)"))
            #expect(try place.fanfare("verify").status == 0)

            // Without the key it is another plan, and everybody gets it on each device.
            let before = try hash(place)
            try write("", to: place)
            let drifted = try place.fanfare("run", "news", "--yes", "--occurrence", "2", "--plan", before)
            #expect(
                drifted.status == 3 && drifted.errors.contains("the campaign file has changed"), "\(drifted.errors)")
            #expect(try place.fanfare("run", "news", "--yes", "--occurrence", "2").status == 0)
            #expect(place.simulator.log().count == 25 + 65)
        }
    }
}
