import Model
import Store
import Testing

extension AccessLogContract {
    private static func given(
        _ campaign: String, _ occurrence: String = "2026-12-04T18:00", startsIn seconds: Int64 = 3600,
        values variables: [String: String] = ["title": "The Reef"], at moment: Timestamp = noon
    ) -> OccurrenceValues {
        OccurrenceValues(
            campaign: campaign, occurrence: occurrence, startsAt: noon + .seconds(seconds), variables: variables,
            givenAt: moment, givenBy: "anna", giver: "token:anna")
    }

    @PromiseList static var startValues: [Promise] {
        Promise("the values of a start are found whole, and the last ones given count") { store in
            let first = given("weekly", values: ["title": "The Reef", "link": "https://example.com/1?a=b&c=\"d\""])
            #expect(try await store.giveValues(first, by: "anna") == .stored)
            #expect(try await store.values(campaign: "weekly", occurrence: first.occurrence) == first)
            #expect(try await store.values(campaign: "weekly", occurrence: "2026-12-11T18:00") == nil)
            #expect(try await store.values(campaign: "daily", occurrence: first.occurrence) == nil)
            var second = given("weekly", values: ["title": "The Wreck"], at: noon + .seconds(1))
            second.givenBy = "ben"
            second.giver = "os:ben"
            #expect(try await store.giveValues(second, by: "ben") == .stored)
            #expect(try await store.values(campaign: "weekly", occurrence: first.occurrence) == second)
            let events = try await store.events(EventFilter(kind: "values_given"), before: nil, limit: 9).events
            #expect(
                events.map(\.detail) == [
                    "weekly, 2026-12-04T18:00: title", "weekly, 2026-12-04T18:00: link, title",
                ])
        }
        Promise("the values of coming starts are listed in the order of the starts") { store in
            for one in [given("late", startsIn: 9), given("past", startsIn: -9), given("early", startsIn: 0)] {
                _ = try await store.giveValues(one, by: "anna")
            }
            #expect(try await store.values(startingFrom: noon).map(\.campaign) == ["early", "late"])
        }
        Promise("the values of a start are removed once, with a record of who did it") { store in
            _ = try await store.giveValues(given("weekly"), by: "anna")
            let key = "2026-12-04T18:00"
            #expect(try await store.removeValues(campaign: "weekly", occurrence: key, by: "ben", now: noon))
            #expect(!(try await store.removeValues(campaign: "weekly", occurrence: key, by: "ben", now: noon)))
            #expect(try await store.values(campaign: "weekly", occurrence: key) == nil)
            let events = try await store.events(EventFilter(kind: "values_removed"), before: nil, limit: 9).events
            #expect(events.map(\.actor.name) == ["ben"])
        }
        Promise("a start that has a run takes no values any more") { store in
            let run = try await store.createRun(try definition("weekly"), occurrence: "k", now: noon, by: "daemon").run
            #expect(try await store.giveValues(given("weekly", "k"), by: "anna") == .started(run.id))
            #expect(try await store.values(campaign: "weekly", occurrence: "k") == nil)
        }
        Promise("values are deleted with the first ones that are given long after their start") { store in
            _ = try await store.giveValues(given("old", startsIn: 0), by: "anna")
            _ = try await store.giveValues(given("kept", startsIn: 2), by: "anna")
            let later = noon + GivenValues.kept + .seconds(1)
            _ = try await store.giveValues(given("new", startsIn: 99_999_999, at: later), by: "anna")
            #expect(try await store.values(startingFrom: noon - .seconds(9)).map(\.campaign) == ["kept", "new"])
        }
        Promise("a person who gave a start its values is a contributor of what it sends") { store in
            _ = try await store.giveValues(given("weekly"), by: "anna")
            func contributors(_ occurrence: String) async throws -> Set<String> {
                try await store.contributors(campaign: "weekly", occurrence: occurrence, digest: "d")
            }
            #expect(try await contributors("2026-12-04T18:00") == ["token:anna"])
            #expect(try await contributors("") == [])
        }
    }
}
