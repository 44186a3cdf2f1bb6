import Foundation
import TestSupport
import Testing

@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Explain and suspended devices` {
    @Test(arguments: StoreKind.available)
    func `a bad token is suspended with its reason, explained, and back with a new registration`(
        kind: StoreKind
    ) async throws {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try Installation(devices: 12, store: store)
            let bad = String(repeating: "cd", count: 32)
            let header = "token,environment,topic,installation_id,locale,app_version,last_seen_at,registered_at\n"
            func line(_ token: String, registered: String) -> String {
                "\(token),production,\(Installation.topic),stranger,de,4.5,2026-11-01T00:00:00Z,\(registered)\n"
            }
            try place.importDevices()
            try place.folder.write(header + line(bad, registered: "2026-01-01T00:00:00Z"), to: "bad.csv")
            #expect(try place.fanfare("devices", "import", "bad.csv").status == 0)
            try place.folder.write("installation_id\nstranger\n", to: "more.csv")
            #expect(try place.fanfare("segments", "import", "podcast-fans", "more.csv", "--add").status == 0)
            #expect(try place.fanfare("devices", "show", "--suspended").output.contains("no device is suspended"))
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)

            let list = try place.fanfare("devices", "show", "--suspended")
            #expect(list.status == 0, "\(list.errors)")
            #expect(list.output.contains("stranger") && list.output.contains("BadDeviceToken"))
            #expect(list.errors.contains("1 suspended: 1 BadDeviceToken"))
            #expect(!list.output.contains(bad))
            let json = try place.fanfare("devices", "show", "--suspended", "--json")
            #expect(json.output.contains(#""status_reason" : "BadDeviceToken""#))

            let told = try place.fanfare("explain", "stranger")
            #expect(told.status == 0, "\(told.errors)")
            #expect(told.output.contains("new-podcast: rejected by APNs: 400 BadDeviceToken"))
            #expect(told.output.contains("suspended (BadDeviceToken); learned from new-podcast, run 1"))
            #expect(told.output.contains("suspended: nothing is sent to the device until it registers again"))

            try place.folder.write(header + line(bad, registered: "2030-01-01T00:00:00Z"), to: "again.csv")
            #expect(try place.fanfare("devices", "import", "again.csv").status == 0)
            #expect(try place.fanfare("devices", "show", "--suspended").output.contains("no device is suspended"))
            #expect(try place.fanfare("explain", "stranger").output.contains("active: runs may send to the device"))
        }
    }

    @Test func `a whole token, an old token and the end of one find the device`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        let new = String(repeating: "ef", count: 32)
        try place.folder.write(
            "token,environment,topic,installation_id,registered_at\n"
                + "\(new),production,\(Installation.topic),install-2,2030-01-01T00:00:00Z\n",
            to: "new.csv")
        #expect(try place.fanfare("devices", "import", "new.csv").status == 0)
        for words in [new, place.tokens[2], "install-2", String(new.suffix(8))] {
            let told = try place.fanfare("explain", words)
            #expect(told.output.contains("token …\(place.tokens[2].suffix(8)) replaced by …efefefef"), "\(told.errors)")
            #expect(!told.output.contains(new))
        }
        let json = try place.fanfare("explain", "install-2", "--json")
        #expect(json.output.contains(#""kind" : "registration""#))
        #expect(try place.fanfare("explain", "nobody").status == 66)
        #expect(try place.fanfare("devices", "show", "install-1", "--suspended").status == 64)
    }
}
