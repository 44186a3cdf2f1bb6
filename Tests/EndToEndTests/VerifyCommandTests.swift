import Foundation
import TestSupport
import Testing

@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Verify` {
    @Test func `a store that was used is sound, and one changed by hand is not`() throws {
        let place = try Installation(devices: 12)
        try place.importDevices()
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        // No device has been seen within 14 days.
        #expect(try place.run("refresh-episodes", "--var", "reason=new").status == 3)
        let sound = try place.fanfare("verify")
        #expect(sound.status == 0, "\(sound.output)")
        #expect(sound.output.contains("silent budget violations: 0."))
        try place.change("UPDATE delivery SET status = 0 WHERE state = 1; UPDATE run SET accepted = 11 WHERE id = 1;")
        let broken = try place.fanfare("verify", "--limit", "2")
        #expect(broken.status == 65)
        #expect(broken.output.contains("CHECKS FAILED"))
        #expect(broken.output.contains("and 10 more"))
        #expect(broken.output.contains("(…\(place.tokens[0].suffix(8)))"))
        #expect(!broken.output.contains(place.tokens[0]))
        let json = try place.fanfare("verify", "--store", "fanfare.sqlite", "--json")
        #expect(json.status == 65)
        #expect(json.output.contains(#""is_sound" : false"#))
    }

    @Test func `a store that is not there, or is none, is said so`() throws {
        let place = try Installation(devices: 1)
        #expect(try place.fanfare("verify", "--store", "nowhere.sqlite").status == 78)
        try place.folder.write("notes", to: "notes.txt")
        #expect(try place.fanfare("verify", "--store", "notes.txt").status == 65)
        try place.folder.write("", to: "empty.sqlite")
        let empty = try place.fanfare("verify", "--store", "empty.sqlite")
        #expect(empty.status == 78)
        #expect(empty.errors.contains("empty.sqlite"))
    }
}
