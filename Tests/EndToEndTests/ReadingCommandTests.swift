import APNsSimulator
import Foundation
import GRDB
import TestSupport
import Testing

/// Commands that only look, given by somebody who may do nothing else.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A command that reads` {
    private static let commands = [
        ["status"], ["status", "1", "--json"], ["report", "1"], ["report", "1", "--check"],
        ["report", "1", "--format", "csv"],
        ["explain", "install-1"], ["verify"], ["devices", "show"], ["devices", "show", "install-1"], ["audit"],
        ["schedule"], ["segments", "list"], ["segments", "show", "podcast-fans"],
        ["plan", "new-podcast"] + Installation.words,
    ]

    /// A finished run, in a store that lies in a folder of its own.
    private func place() throws -> (Installation, folder: String) {
        let place = try Installation(devices: 5)
        try place.importDevices()
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        let folder = place.folder.path + "/kept"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        // Whole, also where the last command left a log beside its store.
        #expect(try place.fanfare("backup", folder + "/fanfare.sqlite").status == 0)
        return (place, folder)
    }

    /// Files to 444 and their folder to 555; and back, so that it can be removed.
    private func whileWriteProtected(_ folder: String, _ body: () throws -> Void) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) { chmod("\(folder)/\(name)", 0o444) }
        chmod(folder, 0o555)
        defer { chmod(folder, 0o755) }
        try body()
    }

    /// Root without the capability to pass over modes, anybody else as they are.
    private func fanfare(_ place: Installation, _ words: [String]) throws -> Program.Result {
        let drop = getuid() == 0 ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] : []
        return try Program.run(
            drop + [Program.url.path] + words, in: place.folder, environment: ["FANFARE_STORE": "kept/fanfare.sqlite"],
            program: URL(fileURLWithPath: "/usr/bin/env"))
    }

    private func expectAnswers(_ place: Installation, sourceLocation: SourceLocation = #_sourceLocation) throws {
        for words in Self.commands {
            let result = try fanfare(place, words)
            #expect(result.status == 0, "\(words): \(result.errors)", sourceLocation: sourceLocation)
            #expect(!result.output.isEmpty, "\(words)", sourceLocation: sourceLocation)
            #expect(
                !result.errors.contains("warning: runs"), "\(words): \(result.errors)", sourceLocation: sourceLocation)
        }
    }

    @Test func `needs no right to write, and leaves nothing behind`() throws {
        let (place, folder) = try place()
        try whileWriteProtected(folder) { try expectAnswers(place) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["fanfare.sqlite"])
    }

    @Test func `exports all runs but one that cannot be read, names that one, and exits with 65`() throws {
        let place = try Installation(devices: 5)
        try place.importDevices()
        for occurrence in ["a", "b"] {
            #expect(try place.run("new-podcast", "--occurrence", occurrence).status == 0)
        }
        try place.change("UPDATE run SET definition = '{' WHERE id = 1")
        for table in ["runs", "deliveries", "timeline"] {
            let result = try place.fanfare("export", table, "--format", "csv", "-o", "tables")
            #expect(result.status == 65 && result.output.contains(" in 1 file under tables"), "\(result)")
            #expect(result.errors.contains("error: the export lacks a run: new-podcast: run 1 cannot be read"))
            let json = try place.fanfare("export", table, "--format", "csv", "-o", "tables", "--json")
            #expect(json.status == 65 && json.output.contains("\"run\" : 1"), "\(json)")
        }
        for table in ["events", "devices"] {
            #expect(try place.fanfare("export", table, "--format", "csv", "-o", "tables").status == 0)
        }
        #expect(try place.fanfare("export", "runs", "--since", "2100-01-01", "-o", "later").status == 0)
    }

    @Test func `shows all runs but one that cannot be read, and names that one`() throws {
        let place = try Installation(devices: 5)
        try place.importDevices()
        for occurrence in ["a", "b"] {
            #expect(try place.run("new-podcast", "--occurrence", occurrence).status == 0)
        }
        try place.change("UPDATE run SET definition = replace(definition, '\"alert\"', '\"hologram\"') WHERE id = 1")
        let status = try place.fanfare("status")
        #expect(status.status == 0 && status.output.contains("error: new-podcast: run 1 cannot be read"), "\(status)")
        #expect(status.output.contains("finished"))
        let json = try place.fanfare("status", "--json").output
        #expect(json.contains("\"unreadable\"") && json.contains("\"occurrence\" : \"b\""), "\(json)")
        let one = try place.fanfare("status", "1")
        #expect(one.status == 65 && one.errors.contains("run 1 cannot be read"), "\(one)")
        #expect(try place.fanfare("status", "new-podcast").output.contains("finished"))
        #expect(try place.fanfare("status", "new-podcast/b").status == 0)
        for words in [["report", "2"], ["explain", "install-1"], ["run", "--due"]] {
            let result = try place.fanfare(words)
            #expect(result.status == 0, "\(words): \(result)")
        }
        #expect(try place.run("new-podcast", "--occurrence", "c").status == 0)
    }

    @Test func `answers at once beside a writer that holds the lock`() throws {
        let (place, folder) = try place()
        let writer = try DatabaseQueue(path: folder + "/fanfare.sqlite")
        try writer.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA journal_mode = WAL; UPDATE device SET badge = badge + 1")
            try db.execute(sql: "BEGIN IMMEDIATE; UPDATE device SET badge = badge + 1")
            try whileWriteProtected(folder) { try expectAnswers(place) }
            try db.execute(sql: "ROLLBACK")
        }
        try writer.close()
    }

    /// What a writer that was killed leaves beside the store.
    private func leaveLog(_ place: Installation, in folder: String, of names: [String]) throws {
        let path = place.folder.path + "/fanfare.sqlite"
        let writer = try DatabaseQueue(path: path)
        try writer.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA journal_mode = WAL; UPDATE device SET badge = badge + 7")
            for name in names {
                try? FileManager.default.removeItem(atPath: folder + "/fanfare.sqlite" + name)
                try FileManager.default.copyItem(atPath: path + name, toPath: folder + "/fanfare.sqlite" + name)
            }
        }
        try writer.close()
    }

    @Test func `answers beside the log of a writer that was killed, and leaves nothing behind`() throws {
        let (place, folder) = try place()
        try leaveLog(place, in: folder, of: ["", "-wal", "-shm"])
        let before = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        try whileWriteProtected(folder) { try expectAnswers(place) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == before)
        for name in before { chmod("\(folder)/\(name)", 0o600) }
        try expectAnswers(place)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == before)
    }

    @Test func `says what keeps it from reading a log that was left without its index`() throws {
        let (place, folder) = try place()
        try leaveLog(place, in: folder, of: ["", "-wal"])
        let before = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        try whileWriteProtected(folder) {
            let result = try fanfare(place, ["status"])
            #expect(result.status == 78 && result.errors.contains("-shm is missing"), "\(result.errors)")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == before)
    }

    @Test(.enabled(if: getuid() == 0, "only root can be somebody else"))
    func `of another user keeps the owner of the store from nothing`() throws {
        let (place, folder) = try place()
        try leaveLog(place, in: folder, of: ["", "-wal"])
        let before = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        for path in [place.folder.path, folder] { chmod(path, 0o777) }
        for name in before { chmod("\(folder)/\(name)", 0o644) }
        chmod(place.folder.path + "/key.p8", 0o644)
        let result = try Program.run(
            ["setpriv", "--reuid=65534", "--clear-groups", Program.url.path, "status"], in: place.folder,
            environment: ["FANFARE_STORE": "kept/fanfare.sqlite"], program: URL(fileURLWithPath: "/usr/bin/env"))
        #expect(result.status == 78, "\(result.output) \(result.errors)")
        #expect(result.errors.contains("the store's owner could not write"), "\(result.errors)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == before)
        // Its owner may, and then everybody can read.
        #expect(try place.fanfare("status", environment: ["FANFARE_STORE": "kept/fanfare.sqlite"]).status == 0)
    }

    @Test func `says what a crash left, and leaves putting it in order to those who write`() async throws {
        try await OwnThread.run {
            let place = try Installation(devices: 40) {
                // The rest is never answered, so that the run is met in the middle.
                $0.faults = [.init(when: .always.skipping(1), action: .silence)]
            }
            try place.importDevices()
            let run = try RunningProgram(
                ["run", "new-podcast", "--occurrence", "a", "--yes"] + Installation.words, in: place.folder)
            try run.wait { place.simulator.counts().requests > 1 }
            run.signal(SIGKILL)
            _ = try run.finish()
            for _ in 1...2 {
                let status = try place.fanfare("status")
                #expect(status.status == 0)
                #expect(status.errors.contains("was abandoned by"), "\(status.errors)")
                #expect(status.errors.contains("this command only reads"), "\(status.errors)")
            }
            let paused = try place.fanfare("pause", "1")
            #expect(
                paused.errors.contains("was abandoned by") && !paused.errors.contains("only reads"), "\(paused.errors)")
            #expect(try !place.fanfare("status").errors.contains("was abandoned by"))
        }
    }
}

@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A store that is not there` {
    private static let commands = [
        ["status"], ["report", "1"], ["explain", "x"], ["verify"], ["devices", "show"], ["devices", "export"],
        ["devices", "prune", "--gone-before", "180d"], ["audit"], ["segments", "list"],
        ["segments", "define", "all", "locale is null or not locale is null"], ["pause", "1"], ["resume", "1"],
        ["cancel", "1"], ["run", "--due"], ["run", "new-podcast", "--yes"] + Installation.words,
        ["plan", "new-podcast"] + Installation.words, ["serve"], ["backup", "b.sqlite"], ["prune-outcomes"],
        ["test-send", "new-podcast", "--device", "x"] + Installation.words,
    ]

    @Test(arguments: commands) func `is not made by a command that does not say so`(words: [String]) throws {
        let place = try Installation(devices: 1)
        let path = place.folder.path + "/typo.sqlite"
        let missing = try Program.run(words, in: place.folder, environment: ["FANFARE_STORE": "typo.sqlite"])
        #expect(missing.status == 78, "\(missing.output) \(missing.errors)")
        for part in ["there is no store at typo.sqlite", "devices import", "named by FANFARE_STORE"] {
            #expect(missing.errors.contains(part), "\(missing.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: path))
        try place.folder.write("", to: "typo.sqlite")
        let empty = try Program.run(words, in: place.folder, environment: ["FANFARE_STORE": "typo.sqlite"])
        #expect(empty.status == 78 && empty.errors.contains("typo.sqlite is an empty file"), "\(empty.errors)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)).isEmpty)
    }

    @Test func `is made by the imports, and by a daemon that is told to`() throws {
        let place = try Installation(devices: 2)
        #expect(try place.fanfare("status").errors.contains("fanfare.sqlite; correct the path"))
        #expect(try place.fanfare("status").errors.contains("(named by `store` in fanfare.yaml)"))
        let daemon = try RunningProgram(["serve", "--create"], in: place.folder)
        try daemon.wait { daemon.errors.contains("files read") }
        daemon.signal(SIGTERM)
        #expect(try daemon.finish().status == 0)
        #expect(try place.fanfare("status").status == 0)
        #expect(
            try place.fanfare("devices", "import", "devices.csv", environment: ["FANFARE_STORE": "other.sqlite"]).status
                == 0)
        try place.folder.write("installation_id\ninstall-0\n", to: "fans.csv")
        #expect(
            try place.fanfare("segments", "import", "fans", "fans.csv", environment: ["FANFARE_STORE": "third.sqlite"])
                .status
                == 0)
    }
}

@Suite(.ownThread, .timeLimit(.minutes(5))) struct `A store that cannot be used` {
    @Test(arguments: [["status"], ["devices", "import", "devices.csv"], ["serve"]])
    func `is said to be a folder or a pipe`(words: [String]) throws {
        let place = try Installation(devices: 1)
        let result = try Program.run(words, in: place.folder, environment: ["FANFARE_STORE": "campaigns"])
        #expect(result.status == 78 && result.errors.contains("campaigns is not a file"), "\(result.errors)")
        mkfifo(place.folder.path + "/pipe", 0o600)
        let pipe = try Program.run(words, in: place.folder, environment: ["FANFARE_STORE": "pipe"])
        #expect(pipe.status == 78 && pipe.errors.contains("pipe is not a file"), "\(pipe.errors)")
    }

    @Test func `is named when it may not be read`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        chmod(place.folder.path + "/fanfare.sqlite", 0o000)
        let drop = getuid() == 0 ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] : []
        let result = try Program.run(
            drop + [Program.url.path, "status"], in: place.folder, program: URL(fileURLWithPath: "/usr/bin/env"))
        #expect(result.status == 78 && result.errors.contains("may not read the store"), "\(result.errors)")
        #expect(!result.errors.contains("SQLite"), "\(result.errors)")
    }

    @Test func `keeps a backup's mistakes apart from its own`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        let result = try place.fanfare("backup", "/nonexistent/x")
        #expect(result.status == 73, "\(result.errors)")
        #expect(result.errors.contains("cannot write /nonexistent/x: its folder does not exist; name another path"))
    }

    @Test(.enabled(if: FullDisk.isPossible, "this machine allows no mount of a tmpfs"))
    func `for want of space is said to be so when it is opened`() throws {
        let place = try Installation(devices: 10)
        let result = try FullDisk.run(
            """
            "$FANFARE" devices import devices.csv || exit 1
            head -c 8m /dev/zero > full/filler 2> /dev/null
            for words in "backup b.sqlite" "devices import devices.csv" "serve"; do
                "$FANFARE" $words; echo "$words: $?"
            done
            "$FANFARE" devices show; echo "show: $?"
            """, in: place.folder)
        for words in ["backup b.sqlite", "devices import devices.csv", "serve"] {
            #expect(result.output.contains("\(words): 75"), "\(result.output) \(result.errors)")
        }
        #expect(result.output.contains("show: 0"), "\(result.output) \(result.errors)")
        #expect(result.errors.contains("no free space for the store"))
        #expect(!result.errors.contains("SQLite"), "\(result.errors)")
    }
}
