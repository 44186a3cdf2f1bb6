import Foundation
import Testing

/// The project's own rules, checked like everything else.
@Suite(.timeLimit(.minutes(10))) struct `Tidiness` {
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static func swiftFiles(under folder: String) throws -> [URL] {
        let found = FileManager.default.enumerator(at: root.appending(path: folder), includingPropertiesForKeys: nil)
        let files = (found?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
        try #require(!files.isEmpty)
        return files
    }

    @Test func `swift format has nothing to say`() throws {
        let lint = Process()
        lint.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        lint.arguments = ["swift", "format", "lint", "--strict", "--recursive", "Sources", "Tests", "Package.swift"]
        lint.currentDirectoryURL = Self.root
        let output = Pipe()
        lint.standardError = output
        lint.standardOutput = output
        try lint.run()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        lint.waitUntilExit()
        #expect(lint.terminationStatus == 0, "\(said.prefix(4000))")
    }

    @Test(arguments: ["Sources", "Tests"])
    func `no source file passes 400 lines`(folder: String) throws {
        for file in try Self.swiftFiles(under: folder) {
            let lines = try String(contentsOf: file, encoding: .utf8).split(
                separator: "\n", omittingEmptySubsequences: false
            ).count
            #expect(lines <= 401, "\(file.lastPathComponent) has \(lines - 1) lines")
        }
    }

    @Test func `a folder of Sources holds at most 15 files`() throws {
        let folders = Dictionary(grouping: try Self.swiftFiles(under: "Sources")) {
            $0.deletingLastPathComponent().path
        }
        let full = folders.filter { $0.value.count > 15 }.map { "\($0.key): \($0.value.count) files" }.sorted()
        #expect(full.isEmpty, "\(full.joined(separator: "\n"))")
    }

    @Test func `a file of Sources has 80 to 150 lines in the middle`() throws {
        let lines = try Self.swiftFiles(under: "Sources").map { file in
            try String(contentsOf: file, encoding: .utf8).count { $0 == "\n" }
        }.sorted()
        #expect((80...150).contains(lines[lines.count / 2]), "the median is \(lines[lines.count / 2]) lines")
    }

    @Test func `the README has at most 170 lines, and but for tables and commands none over 120 columns`() throws {
        let text = try String(contentsOf: Self.root.appending(path: "README.md"), encoding: .utf8)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 171)
        let long = lines.filter { $0.count > 120 && !$0.hasPrefix("|") && !$0.hasPrefix("apt-get ") }
        #expect(long.isEmpty, "\(long.joined(separator: "\n"))")
    }

    /// The targets that wrap C, or write to sockets byte by byte.
    private static let pointerTargets: Set = [
        "APNs", "APNsSimulator", "HTTP2", "Platform", "PostgresStore", "SQLiteStore", "Systemd", "WebClient",
    ]

    /// Reads the events of libyaml, a C library: Yams has no call that reads them one by one.
    private static let pointerFile = "CampaignFiles/YAMLEvents.swift:"

    private static func targets() throws -> [String] {
        let sources = root.appending(path: "Sources").path
        let names = try FileManager.default.contentsOfDirectory(atPath: sources).filter { !$0.hasPrefix(".") }
        // System libraries hold no Swift.
        return try names.sorted().filter { name in
            let files = FileManager.default.enumerator(atPath: "\(sources)/\(name)")
            let paths = try #require(files).compactMap { $0 as? String }
            return paths.contains { $0.hasSuffix(".swift") }
        }
    }

    /// The lines of a target's files, comments left out, in which one of the words stands.
    private static func lines(of target: String, holding words: [String]) throws -> [String] {
        try swiftFiles(under: "Sources/\(target)").flatMap { file in
            try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
                .enumerated().filter { _, line in
                    !line.drop { $0 == " " }.hasPrefix("//") && words.contains { line.contains($0) }
                }
                .map { "\(target)/\(file.lastPathComponent):\($0 + 1): \($1.drop { $0 == " " })" }
        }
    }

    @Test func `no pointer leaves the targets that wrap C`() throws {
        let outside = try Self.targets().filter { !Self.pointerTargets.contains($0) }
        #expect(outside.count >= 5)
        let words = [
            "Unsafe", "OpaquePointer", "Unmanaged", "withUTF8Buffer", "withContiguousStorage",
            "withContiguousMutableStorage",
        ]
        let offenders = try outside.flatMap { try Self.lines(of: $0, holding: words) }
            .filter { !$0.hasPrefix(Self.pointerFile) }
        #expect(offenders.isEmpty, "\(offenders.joined(separator: "\n"))")
    }

    /// A type that is shared by promise alone belongs where C needs it.
    @Test func `nothing else is declared safe to share without the compiler's word`() throws {
        let outside = try Self.targets().filter { !Self.pointerTargets.contains($0) }
        let offenders = try outside.flatMap { try Self.lines(of: $0, holding: ["@unchecked Sendable"]) }
        #expect(offenders.isEmpty, "\(offenders.joined(separator: "\n"))")
    }

    /// `Character`s are of any length: a text is cut by scalars or bytes, see `Redaction.beginning`.
    @Test func `no text of others is cut by characters before it goes on record`() throws {
        let offenders = try Self.targets().flatMap { try Self.lines(of: $0, holding: ["withoutTokens("]) }
            .filter { $0.contains(".prefix(") && !$0.contains("unicodeScalars.prefix(") }
        #expect(offenders.isEmpty, "\(offenders.joined(separator: "\n"))")
    }

    /// The files with regular expressions. Their texts are short, are our own, or leave an expression one way to match.
    private static let expressionFiles: Set = [
        "APNs/PushResponse.swift", "CampaignFiles/ValueDecoder.swift", "Campaigns/ContributorLookup.swift",
        "Campaigns/DeviceUploads.swift", "Campaigns/InstallationChecks.swift", "FeedReader/FeedScanner.swift",
        "FeedReader/FeedText.swift", "Model/PostgresAddress.swift", "Model/StoreAddress.swift",
        "PostgresStore/DeliveryTable.swift", "PostgresStore/PostgresLink+Open.swift", "Web/CommandReplacement.swift",
        "Web/PageHTML.swift", "Web/PersonName.swift",
    ]

    /// Files that search bytes, a text of the operator, or our own pages.
    private static let searchFiles: Set = [
        "Web/MultipartBody.swift", "APNs/CredentialFile.swift", "Guide/MarkdownSpans.swift",
        "fanfare/ThisProcess.swift",
    ]

    /// A regular expression may take a time that grows with the square of its text, and so may a search for a text by
    /// `Character`: use `place(of:)` or `places(of:)`.
    @Test func `texts of others are read in linear time`() throws {
        func files(holding words: [String]) throws -> Set<String> {
            Set(
                try Self.targets().flatMap { try Self.lines(of: $0, holding: words) }.map { line in
                    String(line.prefix { $0 != ":" })
                })
        }
        let expressions = [
            "Regex(", "firstMatch(", "wholeMatch(", "prefixMatch(", ".matches(of", "(/^", "of: /", "replacing(/",
            "contains(/", "NSRegularExpression",
        ]
        #expect(try files(holding: expressions).subtracting(Self.expressionFiles).isEmpty)
        #expect(try files(holding: [".firstRange(of:", ".ranges(of:"]).subtracting(Self.searchFiles).isEmpty)
    }

    @Test func `every use case that takes a reason takes it through the one gate`() throws {
        var takers = 0
        for file in try Self.swiftFiles(under: "Sources/Campaigns") {
            let text = try String(contentsOf: file, encoding: .utf8)
            guard text.contains(/func [^{}]*\breason: String\??[^{}]*\bby actor: Actor/) else { continue }
            takers += 1
            #expect(text.contains("RecordedReason."), "\(file.lastPathComponent) takes a reason as it comes")
        }
        #expect(takers >= 4)
    }

    @Test func `at most five tests may fail, for a reason and for 14 days`() throws {
        let text = try String(contentsOf: Self.root.appending(path: ".ci/flaky"), encoding: .utf8)
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(lines.count <= 5)
        for line in lines {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
            try #require(fields.count == 3 && !fields[1].isEmpty && !fields[2].isEmpty, "\(line)")
            let since = try Date(String(fields[0]), strategy: .iso8601.year().month().day())
            #expect(since.timeIntervalSinceNow < 86_400 && since.timeIntervalSinceNow > -15 * 86_400, "\(line)")
        }
    }

    @Test func `the top level holds what was agreed and nothing else`() throws {
        let allowed: Set = [
            "Package.swift", "Sources", "Tests", "campaigns", "templates", "systemd", "README.md", "Package.resolved",
        ]
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.root.path)
        #expect(Set(names.filter { !$0.hasPrefix(".") }).isSubset(of: allowed))
    }
}
