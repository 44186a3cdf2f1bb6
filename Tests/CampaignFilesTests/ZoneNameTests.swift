import CampaignFiles
import Foundation
import Model
import Testing

/// The zones of a schedule. A wrong reading sends at a wrong time.
struct ZoneNameTests {
    private func read(_ zone: String, unknown: String = "drop") -> (Campaign?, [Diagnostic]) {
        CampaignFile.read(
            text: """
                campaign: a
                topic: com.example.a
                push_type: alert
                template: a
                expires_after: 1h
                audience: everyone
                schedule: {cron: "0 9 * * *", zone: "\(zone)", unknown_zone: "\(unknown)"}
                """, path: "c.yaml")
    }

    @Test(arguments: [
        "UTC", "GMT", "Etc/UTC", "Etc/GMT-14", "Europe/Berlin", "Europe/Kyiv", "America/Argentina/Buenos_Aires",
        "America/Buenos_Aires", "US/Eastern", "Asia/Calcutta", "Japan", "CET", "EST5EDT", "GB", "NZ-CHAT", "recipient",
    ])
    func `a name of the database is accepted`(name: String) {
        #expect(read(name).1.map(\.description) == [])
        if name != "recipient" { #expect(read("recipient", unknown: name).1.map(\.description) == []) }
    }

    /// Foundation reads each of them, most as another zone than the author means.
    @Test(arguments: [
        ("BST", "did you mean \"Europe/London\"?"), ("AST", "did you mean \"America/Halifax\"?"),
        ("PST", "did you mean \"America/Los_Angeles\"?"), ("NST", "did you mean \"America/St_Johns\"?"),
        ("ART", "did you mean \"America/Argentina/Buenos_Aires\"?"), ("CAT", "did you mean \"Africa/Harare\"?"),
        ("JST", "did you mean \"Asia/Tokyo\"?"), ("IST", "write a name such as Europe/Berlin"),
        ("CST", "write a name such as Europe/Berlin"), ("SST", "write a name such as Europe/Berlin"),
        ("ECT", "write a name such as Europe/Berlin"), ("BET", "write a name such as Europe/Berlin"),
        ("CNT", "write a name such as Europe/Berlin"), ("ACT", "write a name such as Europe/Berlin"),
        ("SystemV/EST5", "write a name such as Europe/Berlin"), ("Factory", "write a name such as Europe/Berlin"),
        ("UTC+14", "\"Etc/GMT-14\" for this offset"), ("GMT-3", "\"Etc/GMT+3\" for this offset"),
        ("GMT-12:34", "write a name such as Europe/Berlin"),
    ])
    func `an abbreviation or an offset is refused`(name: String, advice: String) throws {
        for (key, diagnostics) in [
            ("zone", read(name).1), ("unknown_zone", read("recipient", unknown: name).1),
        ] {
            let error = try #require(diagnostics.first { $0.severity == .error }, "\(key): \(name) is accepted")
            #expect(error.what == "\"\(key)\": \"\(name)\" is not the IANA name of a time zone")
            #expect(error.advice.contains(advice), "\(error)")
        }
    }

    @Test(arguments: [
        ("CEST", "did you mean \"Europe/Paris\"?"), ("europe/berlin", "did you mean \"Europe/Berlin\"?"),
        ("utc", "did you mean \"UTC\"?"), ("Mars/Olympus_Mons_Base", "write recipient or a name"),
    ])
    func `an unknown name is refused`(name: String, advice: String) throws {
        let error = try #require(read(name).1.first)
        #expect(error.what == "\"zone\": no time zone is called \"\(name)\"")
        #expect(error.advice.contains(advice), "\(error)")
    }

    /// A run that is stored with such a zone, or a device that reports one, keeps its reading.
    @Test func `a stored zone is still read`() {
        var schedule = Schedule(trigger: .cron("0 9 * * *"))
        for name in ["BST", "UTC+14"] {
            schedule.zone = .named(name)
            #expect(Timetable(schedule) != nil, "\(name)")
        }
    }
}
