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
        let configuration = try settings.configuration()
        let store = try settings.store(configuration)
        let now = Timestamp(Date())
        var pages: [ExplanationPage] = []
        for device in try await DeviceLookup.devices(text, in: store) {
            guard let story = try await store.story(ofDevice: device.id) else { continue }
            // Under a topic with a suffix there are no background pushes, and no budget.
            let budget = configuration.silentBudget(for: device.record.topic)
            pages.append(
                ExplanationPage(story: story, explanation: Explanation(story, budget: budget, now: now)))
        }
        Console.print(
            json ? try JSONOutput.text(pages.map(\.json)) : pages.map(\.text).joined(separator: "\n\n"))
    }
}
