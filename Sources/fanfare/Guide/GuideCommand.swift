import ArgumentParser
import Campaigns
import Foundation
import Guide
import Model
import Web

struct GuideCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "guide", abstract: "Read the guide: tasks step by step, and a reference.",
        discussion: """
            Without a topic it lists the topics. The daemon shows the same pages under /guide.

              fanfare guide first-broadcast
              fanfare guide --search "quiet hours"
            """)

    @Argument(help: "The topic, as in the list.", completion: .custom(topics))
    var topic: String?

    @Option(help: "Show the sections that contain all of these words.") var search: String?
    @Option(help: "Write the guide as a static site into this folder.", completion: .directory) var site: String?

    @Sendable private static func topics(arguments: [String], index: Int, prefix: String) -> [String] {
        Guide.complete.pages.map(\.name)
    }

    func validate() throws {
        guard [topic, search, site].count(where: { $0 != nil }) <= 1 else {
            throw ValidationError("give only one: a topic, --search or --site")
        }
    }

    func run() throws {
        let guide = Guide.complete
        if let site { return try write(guide, to: site) }
        if let search { return try show(matchesOf: search, in: guide) }
        guard let topic else { return show(listOf: guide) }
        guard let page = guide.page(named: topic) else {
            let suggestion = Suggestion.nearest(to: topic, among: guide.pages.map(\.name))
            throw Failure(
                .notFound,
                "the guide has no topic \"\(topic)\"; "
                    + (suggestion.map { "did you mean \"\($0)\"?" } ?? "list the topics with `fanfare guide`"))
        }
        let text = MarkdownPlain(width: Page.width, isStyled: Console.Stream.results.isColoured).text(page.blocks)
        TerminalPager.show(String(text.dropLast()))
    }

    private func show(listOf guide: Guide) {
        var page = Page()
        page.line("Topics of the guide. Read one with `fanfare guide TOPIC`.")
        page.gap()
        let width = 2 + (guide.pages.map(\.name.count).max() ?? 0)
        for entry in guide.pages { page.line("  \(entry.name.padded(to: width))\(entry.title)") }
        Console.print(page.text)
    }

    private func show(matchesOf search: String, in guide: Guide) throws {
        let matches = guide.search(search)
        guard !matches.isEmpty else {
            throw Failure(.notFound, "no section of the guide contains all of \"\(search)\"; try fewer or other words")
        }
        var page = Page()
        for match in matches {
            page.line("\(match.page.name): \(match.heading ?? match.page.title)")
            for line in Page.wrapped(match.line, width: Page.width - 4).prefix(2) { page.line("    \(line)") }
        }
        Console.print(page.text)
    }

    private func write(_ guide: Guide, to folder: String) throws {
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        } catch {
            throw Failure(.cannotMake, "the folder \(folder) cannot be created: \(error.localizedDescription)")
        }
        let files = try GuideSite(guide).files
        for (name, text) in files {
            let file = try OutputFile("\(folder)/\(name)", mode: 0o644)
            try file.write(text)
            try file.finish()
        }
        Console.print("\(files.count) files in \(folder); open \(folder)/index.html")
    }
}

/// Shows a long text in the pager of the user, if standard output is a terminal.
enum TerminalPager {
    static func show(_ text: String) {
        guard isatty(STDOUT_FILENO) == 1, page(text) else { return Console.print(text) }
    }

    /// Shows the text in a pager. Returns false if no pager could be started.
    private static func page(_ text: String) -> Bool {
        var environment = ProcessInfo.processInfo.environment
        let command = environment["PAGER"].flatMap { $0.isEmpty ? nil : $0 } ?? "less"
        // `less` then quits if the text fits on the screen, shows bold text, and leaves the text on the screen.
        if environment["LESS", default: ""].isEmpty { environment["LESS"] = "FRX" }
        let pager = Process()
        pager.executableURL = URL(fileURLWithPath: "/bin/sh")
        pager.arguments = ["-c", "exec \(command)"]
        pager.environment = environment
        let input = Pipe()
        pager.standardInput = input
        guard (try? pager.run()) != nil else { return false }
        signal(SIGPIPE, SIG_IGN)
        try? input.fileHandleForWriting.write(contentsOf: Data((text + "\n").utf8))
        try? input.fileHandleForWriting.close()
        pager.waitUntilExit()
        // 127 means that the shell did not find the pager.
        return pager.terminationStatus != 127
    }
}
