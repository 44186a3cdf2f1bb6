import Foundation
import TestSupport
import Testing

/// Segments and devices from the command line.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Devices and segments` {
    @Test func `a dry import changes nothing and counts what would be`() throws {
        let place = try Installation(devices: 7)
        let dry = try place.fanfare("devices", "import", "devices.csv", "--dry-run")
        #expect(dry.status == 0, "\(dry.errors)")
        #expect(dry.output.contains("nothing was changed"))
        #expect(dry.output.contains("7 new"))
        #expect(try place.fanfare("devices", "import", "devices.csv").output.contains("7 new"))
        #expect(try place.fanfare("devices", "import", "devices.csv", "--dry-run").output.contains("7 unchanged"))
    }

    @Test func `the devices of a user are shown, and removed after a confirmation`() throws {
        let place = try Installation(devices: 0)
        let lines = (1...45).map { number in
            let user = number <= 42 ? "anna" : "ray"
            let token = String(repeating: "c", count: 62) + "\(number + 10)"
            return "\(token),production,\(Installation.topic),i\(number),\(user)\n"
        }
        try place.folder.write("token,environment,topic,installation_id,user_id\n" + lines.joined(), to: "users.csv")
        #expect(try place.fanfare("devices", "import", "users.csv").status == 0)
        let asked = try place.fanfare("devices", "remove", "anna")
        #expect(asked.status == 3 && asked.errors.contains("nothing was deleted; give --yes"), "\(asked.errors)")
        #expect(asked.errors.contains("i1  \(Installation.topic)  production  active"), "\(asked.errors)")
        let other = try place.fanfare("devices", "remove", "anna", "--topic", "com.example.other", "--yes")
        #expect(other.status == 66 && other.errors.contains("no device \"anna\" to remove"), "\(other.errors)")
        let removed = try place.fanfare("devices", "remove", "anna", "--yes")
        #expect(removed.status == 0 && removed.output == "removed 42 devices\n", "\(removed.output + removed.errors)")
        let json = try place.fanfare("devices", "remove", "i43", "--yes", "--json")
        #expect(json.output.contains("\"deleted\" : true"), "\(json.output + json.errors)")
        // The end of a token is enough to look a device up, but not to remove it.
        let end = try place.fanfare("devices", "remove", "cccccc54", "--yes")
        #expect(end.status == 66, "\(end.output)")
        #expect(try place.fanfare("devices", "show", "ray", "--json").output.contains("\"i44\""))
        #expect(try place.fanfare("audit").output.contains("device_removed"))
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
        #expect(dry.errors.contains("there is no store at typo.sqlite (named by FANFARE_STORE)"), "\(dry.errors)")
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
        #expect(String(decoding: said, as: UTF8.self).contains("run the same command again"))
        let again = try place.fanfare("devices", "import", "many.csv", "--json")
        // The first batch was committed before the lines behind it were read.
        #expect(["20000", "30000"].contains { again.output.contains("\"unchanged\" : \($0)") }, "\(again.output)")
        #expect(again.output.contains("\"rejected\" : 0"))
    }

    @Test func `an import that waits for a pipe stops when it is told to`() throws {
        let place = try Installation(devices: 1)
        let pipe = place.folder.file("pipe")
        try #require(mkfifo(pipe, 0o600) == 0)
        let process = Process()
        process.executableURL = Program.url
        process.arguments = ["devices", "import", "pipe"]
        process.currentDirectoryURL = place.folder.url
        let errors = Pipe()
        (process.standardError, process.standardOutput) = (errors, FileHandle.nullDevice)
        try process.run()
        let overdue = process.killed()
        defer { overdue.cancel() }
        // Returns once the import has opened the pipe; nothing is ever written.
        let writer = open(pipe, O_WRONLY | O_CLOEXEC)
        try #require(writer >= 0)
        defer { close(writer) }
        process.terminate()
        process.waitForEnd()
        let said = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        #expect(process.terminationStatus == 75, "\(said)")
        #expect(said.contains("run the same command again"), "\(said)")
    }

    @Test func `what an export writes an import restores, and the next export is the same bytes`() throws {
        let place = try Installation(devices: 0)
        let token = { (byte: String) in String(repeating: byte, count: 32) }
        let first = #"""
            {"token": "\#(token("ab"))", "environment": "sandbox", "topic": "\#(Installation.topic)", \
            "installation_id": "=1+1", "user_id": " ray ", "locale": "zh-TW", "time_zone": "Asia/Taipei", \
            "country": "TW", "app_version": "4.10", "os_version": "18.1", "model": "iPhone16,1", \
            "alerts_allowed": false, "registered_at": 1793491200123, "last_seen_at": "2026-11-02T09:00:00Z", \
            "badge": 7, "tags": ["a;b", "c", " d", "e\nf"], \
            "attributes": {"plan": "gold", "a.b": "x,\"y\"\n", "Größe": "=2", "magic": "\\\\N"}}
            """#.replacing("\\\n", with: "")
        let second = #"{"token": "\#(token("cd"))", "environment": "production", "topic": "\#(Installation.topic)"}"#
        try place.folder.write("\(first)\n\(second)\n", to: "own.jsonl")
        let import1 = try place.fanfare("devices", "import", "own.jsonl")
        #expect(import1.status == 0 && import1.output.contains("2 new"), "\(import1.output) \(import1.errors)")
        #expect(try place.fanfare("devices", "export", "-o", "one.csv").status == 0)
        let other = ["FANFARE_STORE": "other.sqlite"]
        let import2 = try place.fanfare("devices", "import", "one.csv", environment: other)
        #expect(import2.status == 0 && import2.output.contains("2 new"), "\(import2.output) \(import2.errors)")
        #expect(try place.fanfare("devices", "export", "-o", "two.csv", environment: other).status == 0)
        let (one, two) = (try place.folder.read("one.csv"), try place.folder.read("two.csv"))
        #expect(one == two && one.contains("gold") && one.contains("Größe"), "\(one)\n\(two)")
        #expect(try place.fanfare("devices", "import", "one.csv").output.contains("2 unchanged"))
        let shown = try place.fanfare("devices", "show", "=1+1").output
        #expect(
            shown.contains(#""plan":"gold""#) && shown.contains("badge" + String(repeating: " ", count: 13) + "7"),
            "\(shown)"
        )
    }

    @Test func `a segment is deleted when nothing uses it, with a person's word or --yes`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        _ = try place.fanfare("segments", "define", "inner", "everyone")
        _ = try place.fanfare("segments", "define", "outer", "not segment(\"inner\")")
        let used = try place.fanfare("segments", "delete", "inner", "--yes")
        #expect(used.status == 3 && used.errors.contains("it is used by segment \"outer\""), "\(used.errors)")
        let asked = try place.fanfare("segments", "delete", "outer")
        #expect(asked.status == 3 && asked.errors.contains("give --yes"), "\(asked.errors)")
        #expect(try place.fanfare("segments", "delete", "outer", "--yes").output.contains("deleted segment outer"))
        #expect(try place.fanfare("segments", "delete", "inner", "--yes").status == 0)
        let left = try place.fanfare("segments", "list").output
        #expect(!left.contains("inner") && !left.contains("outer"), "\(left)")
        #expect(try place.fanfare("audit").output.contains("segment_removed"))
    }

    @Test func `an import says which values it left out, and erases only what is marked`() throws {
        let place = try Installation(devices: 0)
        let token = String(repeating: "ab", count: 32)
        func give(_ columns: String, _ cells: String, _ options: String...) throws -> Program.Result {
            let line = "\(token),production,\(Installation.topic),i-1,\(cells)"
            try place.folder.write("token,environment,topic,installation_id,\(columns)\n\(line)\n", to: "d.csv")
            return try place.fanfare(["devices", "import", "d.csv"] + options)
        }
        func export() throws -> String { try place.fanfare("devices", "export").output }
        _ = try give("locale,tags,attributes.plan,attributes.city,badge", "de,beta,gold,Rome,4")
        let odd = try give("locale,attributes.other,tags,badge", "???,x,,")
        #expect(odd.status == 0 && odd.output.hasPrefix("1 line: 0 new, 1 updated"), "\(odd.output)")
        #expect(odd.errors.contains("line 2: locale is not a language tag; the value was left out"), "\(odd.errors)")
        let kept = try export()
        #expect(kept.contains(#"{""city"":""Rome"",""other"":""x"",""plan"":""gold""}"#), "\(kept)")
        #expect(kept.contains(",de,") && kept.contains(",4,beta,"), "\(kept)")
        _ = try give("locale,tags,attributes.plan", #"\N,\N,\N"#)
        let erased = try export()
        #expect(erased.contains(#"{""city"":""Rome"",""other"":""x""}"#) && !erased.contains("beta"), "\(erased)")
        #expect(!erased.contains(",de,"), "\(erased)")
        _ = try give("attributes.plan", "pro", "--replace-attributes")
        #expect(try export().contains(#"{""plan"":""pro""}"#))
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
