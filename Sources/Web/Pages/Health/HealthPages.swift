import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The health page, which shows the state of the service to the operator.
struct HealthPages: Sendable {
    struct Page: Sendable {
        struct Check: Sendable {
            var check: String
            var state: String
            var colour: String
            var lines: [PageHTML]
        }

        struct Queue: Sendable {
            var run: Int64
            var campaign: String
            var pending: String
            var leased: String
            var overdue: String
        }

        struct Sender: Sendable {
            var process: String
            var state: String
            var colour: String
            var lanes: String
            var perSecond: String
            var term: Int64
            var since: PageHTML
            var runs: String
        }

        var senders: [Sender]
        var hasSenders: Bool
        var verdict: PageHTML
        var state: String
        var colour: String
        var at: PageHTML
        var checks: [Check]
        var queues: [Queue]
        var hasQueues: Bool

        init(_ health: HealthResult) {
            verdict = PageHTML(message: health.verdict)
            state = health.state
            colour = StateColour.of(health.state)
            at = PageHTML(time: health.at)
            checks = health.checks.map { check in
                Check(
                    check: check.check, state: check.state == "skipped" ? "not checked" : check.state,
                    colour: StateColour.of(check.state),
                    lines: check.message.split(separator: "\n").map { PageHTML(message: String($0)) })
            }
            queues = health.queues.map { queue in
                Queue(
                    run: queue.run, campaign: queue.campaign, pending: queue.pending.grouped,
                    leased: queue.leased.grouped, overdue: "\(Int(queue.overdueSeconds)) s")
            }
            hasQueues = !queues.isEmpty
            senders = (health.senders ?? []).map { sender in
                Sender(
                    process: sender.process, state: sender.shownState,
                    colour: StateColour.of(sender.state),
                    lanes: sender.lanes.grouped, perSecond: sender.perSecond.grouped, term: sender.term,
                    since: PageHTML(time: sender.since), runs: sender.runs.map { "\($0)" }.joined(separator: ", "))
            }
            hasSenders = !senders.isEmpty
        }
    }

    /// The interval at which a browser reloads the page, in seconds.
    private static let refresh = 15

    let cases: UseCases

    var routes: [PageRoute] { [.get("/health", .read, show)] }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        let health = await cases.health.read().seen(by: try request.caller)
        if request.query("format") == "csv" { return .table(try ListTable.text(health.checks)) }
        var response = try request.page(.health, title: "Health: \(health.state)", Page(health))
        if let name = HTTPField.Name("Refresh") { response.headers[name] = "\(Self.refresh)" }
        return response
    }
}
