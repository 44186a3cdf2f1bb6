import Campaigns
import Hummingbird
import Model

/// The steps from an empty installation to the first broadcast, each with its state.
struct SetupPages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] { PageRoute.readingTexts([.get("/setup", .read, show)]) }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        let steps = try await steps(for: try request.caller)
        let open = steps.count { !$0.isDone }
        let page = SetupPage(
            steps: steps,
            verdict: open == 0 ? "Everything is set up." : "\(steps.count - open) of \(steps.count) steps are done.",
            colour: open == 0 ? "finished" : "paused")
        return try request.page(.setup, title: "Setup", page)
    }

    private func steps(for caller: Caller) async throws -> [SetupPage.Step] {
        let configuration = cases.configuration()
        let devices = try await cases.deviceCounts.latest()?.counts.filter { caller.sees($0.topic) } ?? []
        let count = devices.reduce(0) { $0 + $1.count }
        let segments = try await SegmentAccess(cases, caller).all()
        let campaigns = try await cases.files.campaigns(now: cases.now).filter { caller.sees($0.topic ?? "") }
        let broadcasts = try await cases.found(
            RunSearch(RunFilter(), topic: caller.topic, kind: .alert), at: .newest, limit: 1
        ).runs
        let hasTestDevice = configuration.testDevices != nil || !cases.testDeviceNames.isEmpty
        let mayWrite = configuration.http.editing && caller.role.may(.edit)
        return [
            await credentials(configuration.apps.map(\.topic).filter(caller.sees)),
            .init(
                "Devices", isDone: count > 0,
                done: "\(count.counted("device")) registered.",
                open: "Let the app’s backend register devices, or import a file of tokens.",
                link: .init(address: count > 0 ? "/devices" : "/guide/SegmentsAndImports", label: "Devices")),
            .init(
                "Segment", isDone: !segments.isEmpty, done: "\(segments.count.counted("segment")) defined.",
                open: "Name a group of devices, such as the fans of a show.",
                link: .init(address: "/segments", label: "Segments")),
            .init(
                "Test device", isDone: hasTestDevice,
                done: "Tests can go to a device that the configuration names.",
                open: "Give your own phone a name under test_devices in the configuration, to send tests to it.",
                link: .init(address: "/guide/BeforeYouSend", label: "How to test")),
            .init(
                "Campaign", isDone: !campaigns.isEmpty, done: "\(campaigns.count.counted("campaign")) written.",
                open: "Choose a campaign to start from, and write its message.",
                link: .init(
                    address: campaigns.isEmpty && mayWrite ? "/new" : "/campaigns",
                    label: campaigns.isEmpty && mayWrite ? "New campaign" : "Campaigns")),
            .init(
                "First broadcast", isDone: !broadcasts.isEmpty, done: "Sent. Its page shows what became of it.",
                open: "Open the campaign, fill in its values, send a test, plan it, and send it.",
                link: .init(
                    address: broadcasts.isEmpty ? "/campaigns" : "/",
                    label: broadcasts.isEmpty ? "Campaigns" : "Broadcasts")),
        ]
    }

    /// The step of the apps and their keys, by the checks of Health.
    private func credentials(_ topics: [String]) async -> SetupPage.Step {
        let link = SetupPage.Link(address: "/health", label: "Health")
        guard !topics.isEmpty else {
            return .init(
                "App and key", isDone: false, done: "", open: "Ask the operator to add the app to the configuration.",
                link: link)
        }
        let wrong = (await cases.installation?.latest() ?? []).first { $0.check == .credential && $0.state == .wrong }
        return .init(
            "App and key", isDone: wrong == nil, done: "\(topics.joined(separator: ", ")), with a key that works here.",
            open: CommandReplacement.replaced(in: wrong?.message ?? ""), link: link)
    }
}

/// The list of steps.
struct SetupPage: Sendable {
    struct Link: Sendable {
        var address: String
        var label: String
    }

    struct Step: Sendable {
        var name: String
        var isDone: Bool
        /// What is there, or what to do.
        var summary: String
        var link: Link

        init(_ name: String, isDone: Bool, done: String, open: String, link: Link) {
            self.name = name
            self.isDone = isDone
            summary = isDone ? done : open
            self.link = link
        }
    }

    var steps: [Step]
    var verdict: String
    var colour: String
}
