import Campaigns
import Model

/// The number of devices that an expression selects, or its problems with their columns.
struct CountView: Sendable {
    struct Fault: Sendable {
        var column: Int
        var text: String
    }

    struct Part: Sendable {
        var label: String
        var count: String
    }

    var faults: [Fault] = []
    var problem: String?
    /// The number of devices that a push would reach. `nil` if the expression cannot be counted.
    var reach: String?
    /// The same number. `nil` if the expression cannot be counted.
    var devices: Int?
    var selected = ""
    /// The time of the push, in words. `nil` if the count is of an expression alone.
    var when: String?
    var parts: [Part] = []

    init(problems: [ExpressionProblemResult]) {
        faults = problems.map {
            Fault(column: $0.column, text: [$0.what, $0.advice].compactMap(\.self).joined(separator: "; "))
        }
    }

    init(problem: String) { self.problem = problem }

    init(_ count: ExpressionCountResult) {
        reach = count.reach.grouped
        devices = count.reach
        selected = count.selected.grouped
        parts = Self.environments(count.byEnvironment) + Self.reasons(count.suppressed)
    }

    /// Shows the devices that get a campaign's push, with what its quiet hours and other rules leave out.
    init(_ planned: PlanCampaign.Planned) {
        let (plan, expected) = (planned.result, planned.plan.expected)
        reach = (expected.isUpperBound && expected.devices > 0 ? "At most " : "") + expected.devices.grouped
        // The limits of a campaign compare the whole audience.
        devices = plan.reach
        selected = plan.selected.grouped
        when = planned.occurrence != nil ? "at its next time" : expected.leftOut.isEmpty ? nil : "if it were sent now"
        parts =
            (expected.leftOut.isEmpty ? Self.environments(plan.byEnvironment) : [])
            + Self.reasons(
                plan.suppressed.merging(
                    expected.leftOut.map { ($0.key.rawValue, $0.value) }, uniquingKeysWith: +))
        if let waiting = plan.quietHours?.waiting, waiting > 0 {
            parts.append(Part(label: "after their quiet hours", count: waiting.grouped))
        }
        if plan.nobodyReached?.reason == .allLeftOut { problem = "No device would get the push." }
    }

    private static func environments(_ counts: [String: Int]) -> [Part] {
        counts.filter { $0.value > 0 }.sorted { $0.key < $1.key }.map { Part(label: $0.key, count: $0.value.grouped) }
    }

    private static func reasons(_ counts: [String: Int]) -> [Part] {
        counts.filter { $0.value > 0 }.sorted { $0.key < $1.key }
            .map { Part(label: "not sent to: " + $0.key.withSpaces, count: $0.value.grouped) }
    }
}
