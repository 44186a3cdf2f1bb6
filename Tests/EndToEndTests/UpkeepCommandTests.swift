import APNsSimulator
import Foundation
import TestSupport
import Testing

@Suite(.ownThread, .timeLimit(.minutes(5))) struct `Audit and backup` {
    @Test func `the record says who did what, by which command, with which files`() throws {
        let place = try Installation(devices: 4)
        try place.importDevices()
        let text = try place.folder.read("campaigns/new-podcast.yaml")
        try place.folder.write(
            text.replacing("max_reach: 2000000 ", with: "max_reach: 2 "), to: "campaigns/new-podcast.yaml")
        let refused = try place.run("new-podcast", "--occurrence", "a")
        #expect(refused.status == 3, "\(refused.errors)")
        #expect(try place.run("new-podcast", "--occurrence", "a", "--override-guard", "max_reach").status == 0)
        let audit = try place.fanfare("audit", "new-podcast")
        #expect(audit.status == 0, "\(audit.errors)")
        for words in [
            "run_created  run 1 new-podcast  a", "guard_overridden", "max_reach", "run_finished",
            "--override-guard max_reach", "/campaigns/new-podcast.yaml", "/templates/new-podcast.yaml",
            "(uid \(getuid()))",
        ] {
            #expect(audit.output.contains(words), "\(words) is missing in \(audit.output)")
        }
        let sum = try Program.run(
            ["sha256sum", "campaigns/new-podcast.yaml"], in: place.folder, program: URL(fileURLWithPath: "/usr/bin/env")
        )
        #expect(audit.output.contains(try #require(sum.output.split(separator: " ").first)))
        let json = try place.fanfare("audit", "--since", "1h", "--json")
        #expect(json.output.contains(#""kind" : "devices_imported""#))
        #expect(json.output.contains(#""uid" : \#(getuid())"#))
        #expect(try place.fanfare("audit", "--since", "2999-01-01").output == "no entries\n")
        #expect(try place.fanfare("audit", "--since", "lately").status == 64)
        #expect(try place.fanfare("audit", "42").status == 66)
    }

    @Test func `a backup is made, not overwritten, and good to go on with`() throws {
        let place = try Installation(devices: 5)
        try place.importDevices()
        let made = try place.fanfare("backup", "b.sqlite", "--json")
        #expect(made.status == 0, "\(made.errors)")
        #expect(made.output.contains(#""devices" : 5"#))
        let again = try place.fanfare("backup", "b.sqlite")
        #expect(again.status == 73)
        #expect(again.errors.contains("--force"))
        for name in ["nope.sqlite", "nowhere/nope.sqlite"] {
            let missing = try place.fanfare("restore", name, "--yes")
            #expect(missing.status == 66)
            #expect(
                missing.errors.contains("no file \(name); name a file created by `fanfare backup`"), "\(missing.errors)"
            )
        }
        #expect(try place.fanfare("backup", "b.sqlite", "--force").status == 0)
        let nowhere = try place.fanfare("backup", "no/where.sqlite")
        #expect(nowhere.status == 73)
        #expect(nowhere.errors.contains("cannot write no/where.sqlite: its folder does not exist"), "\(nowhere.errors)")
        #expect(!nowhere.errors.contains("`store`"))
        #expect(try place.fanfare("verify", "--store", "b.sqlite").status == 0)
        try FileManager.default.removeItem(atPath: place.folder.path + "/fanfare.sqlite")
        try FileManager.default.moveItem(
            atPath: place.folder.path + "/b.sqlite", toPath: place.folder.path + "/fanfare.sqlite")
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        #expect(place.simulator.counts().accepted == 5)
    }
}
