import Foundation
import Testing

/// The private words that the code once used. `Language.md` and the second column say what to write instead.
struct GlossaryTests {
    /// A word, or several in a row, as parts of a name: `stage gate` is in `StageGateTests`.
    private static let refused = [
        "doorbell": "EventFD", "wake signal": "EventFD", "sheet": "segment", "seat": "registration, slot",
        "sender post": "SenderRegistration", "own post": "OwnRegistration", "post lost": "registrationLost",
        "company": "participants", "run lead": "TakeoverHook", "words": "summary, arguments, allowed",
        "cap book": "CapUsage", "cap page": "CapRowFormat", "cap cover": "CapLedgerCheck", "owed": "remaining",
        "first load": "BulkImport", "put off indexes": "DeferredIndexes", "grown run": "AudienceGrew",
        "nobody": "noDevice, noSender", "somebody": "a device, a person",
        "plan authors": "ContributorLookup", "glass": "emergencyOverride", "left lease": "AbandonedLease",
        "story": "history", "chapter": "entry", "fate": "outcome", "stage book": "StageStore",
        "stage gate": "StageController", "stage judge": "StageEvaluator", "stage pass": "StagePermit",
        "counted behind": "BackgroundCountCache", "counting gate": "CountQueue", "sending here": "CommandSender",
        "due pass": "RunDueOnce", "studio": "WebConsole", "device screens": "SimulatedDevices",
        "delay line": "DelayQueue", "furnish": "prepare", "farewell": "printSummary", "lease turn": "LeaseRound",
        "read turns": "ReadQueue", "start order": "StartSequence", "address order": "AddressSequence",
        "give back": "release",
    ]

    /// Words that comments do not hold either. The others have a plain meaning beside the private one, as in "the state,
    /// in words".
    private static let refusedInComments: Set = [
        "doorbell", "sheet", "seat", "company", "owed", "story", "chapter", "fate", "studio", "furnish", "farewell",
    ]

    private struct Exception {
        let name: String
        let place: String
        let reason: String
    }

    private static let allowed = [
        Exception(name: "breakGlass", place: "/Sources/", reason: "the field's term, of an option and a key of a file"),
        Exception(name: "breakGlassBy", place: "/Sources/", reason: "a key of a file"),
        Exception(name: "brokenGlass", place: "/Campaigns/", reason: "a field of `--json`"),
        Exception(name: "nobodyReached", place: "/Sources/", reason: "a field of `--json`"),
        Exception(name: "words", place: "/APNs/Journal/", reason: "the machine words of a mapped file"),
        Exception(name: "Words", place: "/APNs/Journal/", reason: "the machine words of a mapped file"),
        Exception(name: "JournalWords", place: "/APNs/Journal/", reason: "the machine words of a mapped file"),
        Exception(name: "FileWords", place: "/APNs/Journal/", reason: "the machine words of a mapped file"),
        Exception(name: "MappedWords", place: "/APNs/Journal/", reason: "the machine words of a mapped file"),
        Exception(name: "wordsPerEntry", place: "/APNs/Journal/", reason: "the machine words of a mapped file"),
        Exception(name: "words", place: "/ContentLint.swift", reason: "the words of a text"),
        Exception(name: "CURLOPT_NOBODY", place: "/WebClient/", reason: "libcurl's"),
        Exception(name: "testWords", place: "/ContentLint.swift", reason: "the rule `test-words` of a file"),
        Exception(name: "testWordsAlone", place: "/ContentLint.swift", reason: "the words of a text"),
        Exception(name: "testPhraseWordsMax", place: "/ContentLint.swift", reason: "the words of a text"),
        Exception(name: "wordsBehindTest", place: "/ContentLint.swift", reason: "the words of a text"),
        Exception(name: "noteWords", place: "/ContentLint.swift", reason: "the words of a text"),
    ]

    @Test func `no name of Sources holds a private word`() throws {
        var files: [String: Set<String>] = [:]
        for (file, line) in try Self.lines() where !line.isComment {
            for name in Self.names(in: line.text) { files[name, default: []].insert(file) }
        }
        var used: Set<Int> = []
        var strangers: [String] = []
        for (name, files) in files {
            guard let word = Self.privateWord(in: name) else { continue }
            for file in files {
                let exception = Self.allowed.firstIndex { $0.name == name && file.contains($0.place) }
                if let exception { used.insert(exception) } else { strangers.append("\(file): \(name), \(word)") }
            }
        }
        let shown = strangers.sorted().prefix(20).joined(separator: "\n")
        #expect(strangers.isEmpty, "write instead:\n\(shown)")
        for (index, exception) in Self.allowed.enumerated() {
            #expect(used.contains(index), "\(exception.name) at \(exception.place) is no longer an exception")
        }
    }

    @Test func `no comment of Sources holds a private word`() throws {
        var lines: [String: Set<String>] = [:]
        for (file, line) in try Self.lines() where line.isComment {
            for name in Self.names(in: line.text) { lines[name, default: []].insert("\(file): \(line.text)") }
        }
        // A type of several words, with no space between them, is a name.
        let strangers = lines.filter { name, _ in
            let plain = name.split { !$0.isLetter }.map { Self.singular($0.lowercased()) }
            return !Self.refusedInComments.isDisjoint(with: plain)
                || name.contains(/[A-Z][a-z]+[A-Z]/) && Self.privateWord(in: name) != nil
        }
        #expect(strangers.isEmpty, "\(strangers.values.joined().sorted().prefix(20).joined(separator: "\n"))")
    }

    /// The runs of letters, digits and underscores. Each is looked at once, however often it is written.
    private static func names(in line: String) -> [String] {
        line.utf8.split { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): false
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...: false
            default: true
            }
        }.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        ("StageGateTests", true), ("StageGate", true), ("stageGates", true), ("tollgate", false), ("gate", false),
        ("stylesheet", false), ("newSheet", true), ("passwords", false), ("stateWords", true), ("allowed", false),
        ("isOwed", true), ("history", false), ("DeviceStory", true), ("stories", true), ("stories_told", true),
        ("postgres", false), ("SenderPost", true), ("post", false), ("HTTPStudio", true), ("giveBack", true),
    ])
    func `a private word is found as a part of a name, and not inside another word`(name: String, isPrivate: Bool) {
        #expect((Self.privateWord(in: name) != nil) == isPrivate)
    }

    /// Returns what to write instead of the private word in a name.
    private static func privateWord(in name: String) -> String? {
        let parts = parts(of: name)
        for start in parts.indices {
            for end in start..<min(parts.count, start + 3) {
                let word = parts[start...end].joined(separator: " ")
                if let instead = refused[word] ?? refused[singular(word)] { return instead }
            }
        }
        return nil
    }

    /// `HTTPStudio` has the parts `http` and `studio`.
    private static func parts(of name: String) -> [String] {
        name.matches(of: /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/).map { $0.0.lowercased() }
    }

    private static func singular(_ word: String) -> String {
        if word.hasSuffix("ies") { return word.dropLast(3) + "y" }
        return word.hasSuffix("s") && !word.hasSuffix("ss") ? String(word.dropLast()) : word
    }

    /// The lines of Sources: comments as they are, and code without what is in quotes.
    private static func lines() throws -> [(file: String, line: (text: String, isComment: Bool))] {
        try `Tidiness`.swiftFiles(under: "Sources").flatMap { file in
            var isInText = false
            let path = file.path
            return try String(contentsOf: file, encoding: .utf8).utf8.split(separator: UInt8(ascii: "\n")).map { line in
                let text = String(decoding: line.drop { $0 == UInt8(ascii: " ") }, as: UTF8.self)
                if text.hasPrefix("//") { return (path, (text, true)) }
                let hasQuotes = line.contains(UInt8(ascii: "\""))
                let quotes = hasQuotes ? text.matches(of: /"""/) : []
                defer { if quotes.count == 1 { isInText.toggle() } }
                guard !isInText else { return (path, ("", false)) }
                let code = text.prefix(upTo: quotes.first?.range.lowerBound ?? text.endIndex)
                return (path, (withoutComment(hasQuotes ? unquoted(code) : code), false))
            }
        }
    }

    /// Removes texts, those in interpolations of other texts first.
    private static func unquoted(_ code: Substring) -> Substring {
        var code = code
        for _ in 0..<3 where code.contains("\"") {
            code = code.replacing(#/\\\((?:[^()"]|\((?:[^()"]|\([^()"]*\))*\))*\)/#, with: "")[...]
            code = code.replacing(#/"(?:\\[^(]|[^"\\])*"/#, with: "")[...]
        }
        return code
    }

    private static func withoutComment(_ code: Substring) -> String {
        String(code.utf8.contains(UInt8(ascii: "/")) ? code.replacing(#/ // .*/#, with: "") : code)
    }
}
