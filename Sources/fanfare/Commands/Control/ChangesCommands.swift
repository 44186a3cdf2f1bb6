import ArgumentParser
import Campaigns
import Foundation
import Model
import Store

struct ChangesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes", abstract: "List, release or reject changes of files that wait for release.",
        discussion: """
            A campaign that starts by a schedule or a feed sends the content of its files. A text that an account \
            without permission `run` writes for such a campaign, or for a template of one, waits until an account that may start \
            runs releases it.
            """,
        subcommands: [ChangesListCommand.self, ChangesReleaseCommand.self, ChangesRejectCommand.self],
        defaultSubcommand: ChangesListCommand.self)
}

struct ChangesListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the changes that wait, or show the text of one.")

    @OptionGroup var settings: Settings
    @Argument(help: "The number of a change.") var change: Int64?
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session(.reading)
        if let change {
            let detail = try await session.useCases.files.change(change)
            if json { return Console.print(try ResultJSON.text(detail)) }
            Console.note(detail.change.summary)
            return Console.print(detail.text)
        }
        let changes = try await session.useCases.files.changes()
        if json { return Console.print(try ResultJSON.text(changes)) }
        Console.print(changes.isEmpty ? "no change waits" : changes.map(\.summary).joined(separator: "\n"))
    }
}

struct ChangesReleaseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "release", abstract: "Write the text of a change, and of those that belong to it, to the files.")

    @OptionGroup var settings: Settings
    @Argument(help: "The number of a change.") var change: Int64
    @OptionGroup var others: OtherChanges
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let seen = try others.confirmed(
            try await session.useCases.files.change(change), "Release", done: "released")
        let result = try await session.useCases.files.release(change, seen: seen, by: session.actor, now: session.now)
        let others = result.together.map { "; \($0.changeNumbers), released with it" } ?? ""
        Console.print(
            json ? try ResultJSON.text(result) : "\(result.path) has the text of change \(result.id)\(others)")
    }
}

struct ChangesRejectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reject",
        abstract: "Reject a change, and its author's changes that belong to it; the files stay unchanged.")

    @OptionGroup var settings: Settings
    @Argument(help: "The number of a change.") var change: Int64
    @Option(help: "The reason, for the audit log.") var reason: String?
    @OptionGroup var others: OtherChanges
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let seen = try others.confirmed(
            try await session.useCases.files.changeToReject(change), "Reject", done: "rejected")
        let result = try await session.useCases.files.reject(
            change, seen: seen, reason: reason, by: session.actor, now: session.now)
        let together = result.together.map { "; \($0.changeNumbers), rejected with it" } ?? ""
        Console.print(
            json
                ? try ResultJSON.text(result)
                : "change \(result.id) is rejected; \(result.path) is unchanged\(together)")
    }
}

/// The changes that belong to the named one. A person names them, or confirms them.
struct OtherChanges: ParsableArguments {
    @Option(
        name: .customLong("with"),
        help: ArgumentHelp(
            "The numbers of the changes that belong to it, separated by commas; without them the command asks.",
            valueName: "numbers"))
    var numbers: String?

    func validate() throws { _ = try named() }

    /// Returns the texts that the person has seen. The number of a change stands for one text only.
    ///
    /// - Parameters:
    ///   - verb: the verb of the question.
    ///   - done: the same verb, as in `nothing was released`.
    func confirmed(_ detail: ChangeDetailResult, _ verb: String, done: String) throws -> [ChangeText] {
        let change = detail.change
        if let named = try named() {
            return Set([change.id] + named).sorted().map { id in
                detail.texts.first { $0.id == id } ?? ChangeText(id: id, etag: "")
            }
        }
        guard let others = change.together else { return detail.texts }
        Console.note(change.summary)
        guard Console.isInteractive else {
            let list = others.map(String.init).joined(separator: ",")
            throw Failure(
                .refused,
                "\(others.changeNumbers) would be \(done) too; nothing was \(done); read them (`fanfare changes list N`), "
                    + "and give --with \(list)")
        }
        guard Console.confirms("\(verb) change \(change.id) and \(others.changeNumbers)?") else {
            throw Failure(.refused, "nothing was \(done)")
        }
        return detail.texts
    }

    private func named() throws -> [Int64]? {
        try numbers?.split(separator: ",").map { text in
            guard let number = Int64(text) else {
                throw ValidationError("--with \(numbers ?? ""): write the numbers of changes, such as 3,4")
            }
            return number
        }
    }
}

extension Session {
    /// Prints one line for each file whose new text waits for release.
    func noteChanges(_ changes: [ChangeResult]) {
        for change in changes { Console.note("\(change.summary); see `fanfare changes`") }
    }
}
