package import Model
package import Store

/// Tells what happened to a device: every run, decision and token, in order.
package struct ExplainDevice: Sendable {
    package struct Explained: Sendable {
        package var story: DeviceStory
        package var explanation: Explanation

        package var result: ExplanationResult { ExplanationResult(story, explanation) }
    }

    private let store: any DeviceRegistry & OutcomeReader
    private let budget: @Sendable (_ topic: String) -> Configuration.SilentBudget?

    /// - Parameter budget: of an app; nil where the configuration does not know it.
    package init(
        store: any DeviceRegistry & OutcomeReader,
        budget: @escaping @Sendable (_ topic: String) -> Configuration.SilentBudget?
    ) {
        self.store = store
        self.budget = budget
    }

    /// The devices a person may mean; an old token finds the device that had it.
    package func explain(_ text: String, now: Timestamp) async throws -> [Explained] {
        var explained: [Explained] = []
        for device in try await DeviceLookup.devices(text, in: store) {
            guard let story = try await store.story(ofDevice: device.id) else { continue }
            // Under a topic with a suffix there are no background pushes, and no budget.
            let explanation = Explanation(story, budget: budget(device.record.topic), now: now)
            explained.append(Explained(story: story, explanation: explanation))
        }
        return explained
    }
}

/// The stable shape of `explain --json`: a list of these.
package struct ExplanationResult: Codable, Hashable, Sendable {
    package struct Event: Codable, Hashable, Sendable {
        package var at, kind: String
        package var run: Int64?
        package var campaign: String?
        package var text: String
    }

    package var device: DeviceResult
    package var events: [Event]
    package var now: [String]
    package var isCut: Bool

    package init(_ story: DeviceStory, _ explanation: Explanation) {
        device = DeviceResult(story.device)
        events = explanation.lines.map { line in
            Event(
                at: line.at.iso8601, kind: line.kind.rawValue, run: line.run, campaign: line.campaign, text: line.text)
        }
        now = explanation.now
        isCut = story.isCut
    }
}
