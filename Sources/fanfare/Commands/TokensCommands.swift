import ArgumentParser
import Campaigns
import Foundation
import Model
import Store

struct TokensCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tokens", abstract: "Create, list and revoke access tokens for the web pages and the API.",
        subcommands: [TokensCreateCommand.self, TokensListCommand.self, TokensRevokeCommand.self])
}

struct TokensCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Create an access token, and show its secret once.",
        discussion: """
            Roles: viewer reads everything; author writes campaigns and segments, plans them, tests them on one device \
            and asks for approval; sender asks for approval, too, and starts, pauses, resumes and cancels runs; approver approves plans and stops runs; registrar registers and \
            removes devices and sees nothing else; admin may do everything.

              fanfare tokens create ios-backend --role registrar --topic com.example.wendercast
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "The name of the token's holder or purpose, as shown in the audit log.") var name: String
    @Option(help: "The role: what the token's holder may do.") var role: AccessRole
    @Option(help: "Restrict the token to the app of this topic.") var topic: String?
    @Option(help: "The lifetime of the token, such as 90d or 12h (default: until it is revoked).") var expires: String?
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard let expires else { return }
        guard let time = WrittenDuration.parse(expires), time > .zero else {
            throw ValidationError("--expires \(expires): write a duration, such as 90d")
        }
    }

    func run() async throws {
        let session = try await settings.session(.making)
        let made = try await ManageAccess(store: session.store).create(
            name: name, role: role, topic: topic, expiresIn: expires.flatMap { WrittenDuration.parse($0) },
            by: session.actor, now: session.now)
        let result = AccessTokenResult(made.token, secret: made.secret, now: session.now)
        if json { return Console.print(try ResultJSON.text(result)) }
        Console.note("this secret is shown once and is not stored: copy it now and give it to its holder")
        Console.print(made.secret)
    }
}

struct TokensListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List access tokens.")

    @OptionGroup var settings: Settings
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session(.reading)
        let tokens = try await ManageAccess(store: session.store).list()
            .map { AccessTokenResult($0, now: session.now) }
        if json { return Console.print(try ResultJSON.text(tokens)) }
        if tokens.isEmpty {
            return Console.print("no access tokens; create one with `fanfare tokens create NAME --role ROLE`")
        }
        for token in tokens { Console.print(text(token)) }
    }

    private func text(_ token: AccessTokenResult) -> String {
        let end =
            switch token.state {
            case "revoked": token.revokedAt.map { "revoked \($0)" } ?? "revoked"
            case "expired": token.expiresAt.map { "ended \($0)" } ?? "ended"
            default: token.expiresAt.map { "until \($0)" } ?? "no end"
            }
        let use = token.lastUsedAt.map { "used \($0)" } ?? "never used"
        return "\("\(token.id)".rightAligned(to: 4))  \(token.name.padded(to: 24)) \(token.role.padded(to: 9))  "
            + "\(token.topic ?? "all topics")  \(end), \(use)"
    }
}

struct TokensRevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Revoke an access token, and the sessions that were opened with it.")

    @OptionGroup var settings: Settings
    @Argument(help: "The token's number in the list, or its name.") var token: String
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let revoked = try await ManageAccess(store: session.store).revoke(
            token, by: session.actor, now: session.now)
        Console.print(
            json
                ? try ResultJSON.text(AccessTokenResult(revoked, now: session.now))
                : "access token \(revoked.id), \(revoked.name), is revoked")
    }
}

extension AccessRole: ExpressibleByArgument {}
