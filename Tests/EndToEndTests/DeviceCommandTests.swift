import Foundation
import TestSupport
import Testing

/// Segments and devices from the command line.
@Suite(.timeLimit(.minutes(10))) struct `Devices and segments` {
    @Test func `a dry import changes nothing and counts what would be`() throws {
        let place = try Installation(devices: 7)
        let dry = try place.fanfare("devices", "import", "devices.csv", "--dry-run")
        #expect(dry.status == 0, "\(dry.errors)")
        #expect(dry.output.contains("nothing was changed"))
        #expect(dry.output.contains("7 new"))
        #expect(try place.fanfare("devices", "import", "devices.csv").output.contains("7 new"))
        #expect(try place.fanfare("devices", "import", "devices.csv", "--dry-run").output.contains("7 unchanged"))
    }

    @Test(arguments: [nil, ""]) func `a dry import makes no store where there is none, and says so`(
        content: String?
    ) throws {
        let place = try Installation(devices: 7)
        if let content { try place.folder.write(content, to: "typo.sqlite") }
        // What a program printed is kept beside it, under names that are hidden.
        func names() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: place.folder.path).filter { $0.first != "." }.sorted()
        }
        let before = try names()
        let dry = try place.fanfare(
            "devices", "import", "devices.csv", "--dry-run", environment: ["FANFARE_STORE": "typo.sqlite"])
        #expect(dry.status == 0 && dry.output.contains("7 new"), "\(dry.errors)")
        #expect(dry.errors.contains("there is no store at typo.sqlite (FANFARE_STORE says so)"), "\(dry.errors)")
        #expect(try names() == before)
        if content != nil { #expect(try place.folder.read("typo.sqlite").isEmpty) }
        let folder = try place.fanfare(
            "devices", "import", "devices.csv", "--dry-run", environment: ["FANFARE_STORE": "gone/typo.sqlite"])
        #expect(folder.status == 78 && folder.errors.contains("does not exist"), "\(folder.errors)")
    }

    @Test func `an import that is stopped exits 75, keeps what it has, and goes on when given again`() throws {
        let place = try Installation(devices: 1)
        let lines = (0..<30_000).map { number in
            let digits = String(number, radix: 16)
            let token = String(repeating: "cd", count: 28) + String(repeating: "0", count: 8 - digits.count) + digits
            return "\(token),production,\(Installation.topic)\n"
        }
        try place.folder.write("token,environment,topic\n" + lines.joined(), to: "many.csv")
        let process = Process()
        process.executableURL = Program.url
        process.arguments = ["devices", "import", "-"]
        process.currentDirectoryURL = place.folder.url
        let (input, errors) = (Pipe(), Pipe())
        (process.standardInput, process.standardError, process.standardOutput) = (input, errors, FileHandle.nullDevice)
        try process.run()
        let overdue = process.killed()
        defer { overdue.cancel() }
        // A pipe holds far less than a batch: when all is written, the first one is in the store.
        try input.fileHandleForWriting.write(contentsOf: Data(place.folder.read("many.csv").utf8))
        process.terminate()
        var said = Data()
        while !String(decoding: said, as: UTF8.self).contains("stopping") {
            let next = errors.fileHandleForReading.availableData
            try #require(!next.isEmpty)
            said += next
        }
        try input.fileHandleForWriting.close()
        said += try errors.fileHandleForReading.readToEnd() ?? Data()
        process.waitForEnd()
        #expect(process.terminationStatus == 75)
        #expect(String(decoding: said, as: UTF8.self).contains("give the same command again"))
        let again = try place.fanfare("devices", "import", "many.csv", "--json")
        // The first batch was committed before the lines behind it were read.
        #expect(["20000", "30000"].contains { again.output.contains("\"unchanged\" : \($0)") }, "\(again.output)")
        #expect(again.output.contains("\"rejected\" : 0"))
    }

    @Test func `prune counts, refuses without a person or --yes, and deletes with it`() throws {
        let place = try Installation(devices: 4)
        try place.importDevices()
        let old = String(repeating: "ef", count: 32)
        try place.folder.write(
            "token,environment,topic,installation_id,last_seen_at,registered_at\n"
                + "\(old),production,\(Installation.topic),old,2024-01-01,2024-01-01\n",
            to: "old.csv")
        #expect(try place.fanfare("devices", "import", "old.csv").status == 0)
        let refused = try place.fanfare("devices", "prune", "--not-seen-since", "2025-01-01")
        #expect(refused.status == 3)
        #expect(refused.errors.contains("1 device"))
        #expect(refused.errors.contains("--yes"))
        #expect(try place.fanfare("devices", "show", "old").status == 0)
        let done = try place.fanfare("devices", "prune", "--not-seen-since", "2025-01-01", "--yes", "--json")
        #expect(done.status == 0, "\(done.errors)")
        #expect(done.output.contains("\"not_seen\" : 1"))
        #expect(done.output.contains("\"deleted\" : true"))
        #expect(try place.fanfare("devices", "show", "old").status == 66)
        #expect(try place.fanfare("devices", "show", "install-3").status == 0)
        #expect(try place.fanfare("devices", "prune", "--gone-before", "30d").output.contains("nothing was deleted"))
    }

    @Test(arguments: [
        [], ["--gone-before", "yesterday"], ["--not-seen-since", "2999-01-01"], ["--gone-before", "0"],
    ]) func `prune without a moment in the past is a mistake of usage`(arguments: [String]) throws {
        let place = try Installation(devices: 1)
        let result = try Program.run(["devices", "prune"] + arguments, in: place.folder)
        #expect(result.status == 64, "\(result.errors)")
    }

    @Test func `a defined segment is whoever its expression selects now, also inside a campaign`() throws {
        let place = try Installation(devices: 5)
        try place.importDevices()
        let defined = try place.fanfare(
            "segments", "define", "german", #"locale in ("de") and segment("podcast-fans")"#)
        #expect(defined.status == 0, "\(defined.errors)")
        #expect(defined.output.contains("5 devices now"))
        let shown = try place.fanfare("segments", "show", "german")
        #expect(shown.output.contains(#"locale in ("de")"#))
        #expect(shown.output.contains("install-0 …\(place.tokens[0].suffix(8))"))
        #expect(!shown.output.contains(place.tokens[0]))
        #expect(try place.fanfare("segments", "list").output.contains("german"))
        let json = try place.fanfare("segments", "show", "podcast-fans", "--sample", "2", "--json")
        #expect(json.output.contains(#""kind" : "static""#))
        #expect(json.output.components(separatedBy: "\"installation_id\"").count == 3)
        let matching = try place.fanfare("devices", "export", "--matching", #"segment("german")"#)
        #expect(matching.output.split(separator: "\n").count == 6)
        let typo = try place.fanfare("segments", "define", "x", "locale = de")
        #expect(typo.status == 65)
        #expect(typo.errors.contains("expression:1:"))
        let circle = try place.fanfare("segments", "define", "german", #"segment("german")"#)
        #expect(circle.status == 65)
        #expect(circle.errors.contains("german -> german"))
        #expect(try place.fanfare("segments", "show", "germn").errors.contains("did you mean \"german\"?"))
    }
}
