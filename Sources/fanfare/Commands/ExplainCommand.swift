import ArgumentParser
import Foundation
import Model
import Store
import Campaigns

struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Tell what happened to a device: every run, decision and token, in order.")

    @OptionGroup var settings: Settings
    @Argument(help: "An installation id, a user id, a token, also one of before, or its last 8 characters.")
    var text: String
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try settings.session()
        let configuration = session.configuration
        let explained = try await ExplainDevice(store: session.store) { configuration.silentBudget(for: $0) }
            .explain(text, now: session.now)
        Console.print(
            json
                ? try JSONOutput.text(explained.map(\.result))
                : explained.map { ExplanationPage(story: $0.story, explanation: $0.explanation).text }
                    .joined(separator: "\n\n"))
    }
}
