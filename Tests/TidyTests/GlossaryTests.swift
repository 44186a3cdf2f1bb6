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

    private struct Name: Hashable {
        let text: String
        let file: String
    }

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
        var used: Set<Int> = []
        var strangers: Set<String> = []
        let names = try Self.lines().filter { !$0.line.isComment }.flatMap { file, line in
            line.text.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map { Name(text: String($0), file: file) }
        }
        for name in Set(names) {
            guard let word = Self.privateWord(in: name.text) else { continue }
            let exception = Self.allowed.firstIndex { $0.name == name.text && name.file.contains($0.place) }
            if let exception { used.insert(exception) } else { strangers.insert("\(name.file): \(name.text), \(word)") }
        }
        let shown = strangers.sorted().prefix(20).joined(separator: "\n")
        #expect(strangers.isEmpty, "write instead:\n\(shown)")
        for (index, exception) in Self.allowed.enumerated() {
            #expect(used.contains(index), "\(exception.name) at \(exception.place) is no longer an exception")
        }
    }

    @Test func `no comment of Sources holds a private word`() throws {
        var strangers: [String] = []
        for (file, line) in try Self.lines() where line.isComment {
            let plain = line.text.split { !$0.isLetter }.map { Self.singular($0.lowercased()) }
            // A type of several words, with no space between them, is a name.
            let named = line.text.matches(of: /[A-Z][a-z]+[A-Z][A-Za-z]+/).compactMap {
                Self.privateWord(in: String($0.0))
            }
            guard !Self.refusedInComments.isDisjoint(with: plain) || !named.isEmpty else { continue }
            strangers.append("\(file): \(line.text)")
        }
        #expect(strangers.isEmpty, "\(strangers.prefix(20).joined(separator: "\n"))")
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
            return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init).map { line in
                if line.drop(while: { $0 == " " }).hasPrefix("//") { return (file.path, (line, true)) }
                let quotes = line.matches(of: /"""/).count
                defer { if quotes == 1 { isInText.toggle() } }
                guard !isInText else { return (file.path, ("", false)) }
                let code = line.prefix(upTo: line.firstRange(of: "\"\"\"")?.lowerBound ?? line.endIndex)
                return (file.path, (unquoted(code), false))
            }
        }
    }

    /// Removes texts, those in interpolations of other texts first, and a comment at the end.
    private static func unquoted(_ code: Substring) -> String {
        var code = code
        for _ in 0..<3 where code.contains("\"") {
            code = code.replacing(#/\\\((?:[^()"]|\((?:[^()"]|\([^()"]*\))*\))*\)/#, with: "")[...]
            code = code.replacing(#/"(?:\\[^(]|[^"\\])*"/#, with: "")[...]
        }
        return String(code.replacing(#/ // .*/#, with: ""))
    }
}
