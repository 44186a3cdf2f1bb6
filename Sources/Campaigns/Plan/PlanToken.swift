import Foundation
package import Model

/// The name of a plan: `p1-<definition>-<template>-<variables>-<reach>`, three ``StableHash``es and a number.
///
/// The parts travel in the name itself, so that `run --plan` can say which of them drifted without anything having
/// been stored. The definition is the campaign file without its variables' defaults and without the spelling of its
/// audience; the templates are those of all variants; the variables are the values the run would use; the reach is
/// the number of devices it would be sent to.
package struct PlanToken: Hashable, Sendable, CustomStringConvertible {
    private static let version = "p1"

    package var definition: String
    package var template: String
    package var variables: String
    package var reach: Int

    package init(_ definition: RunDefinition, reach: Int) throws {
        var campaign = definition.campaign
        campaign.variables = [:]
        campaign.audience.source = ""
        self.definition = try StableHash.text(of: campaign)
        template = try StableHash.text(of: Templates(main: definition.template, variants: definition.variantTemplates))
        variables = try StableHash.text(of: definition.variables)
        self.reach = reach
    }

    /// Nil for anything `fanfare plan` did not print.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, parts[0] == Self.version, let reach = Int(parts[4]), reach >= 0 else { return nil }
        guard parts[1...3].allSatisfy({ $0.utf8.count == 8 && $0.allSatisfy(\.isHexDigit) }) else { return nil }
        definition = parts[1].lowercased()
        template = parts[2].lowercased()
        variables = parts[3].lowercased()
        self.reach = reach
    }

    package var description: String { "\(Self.version)-\(definition)-\(template)-\(variables)-\(reach)" }

    private struct Templates: Encodable {
        var main: Template
        var variants: [String: Template]
    }
}

/// What is different from the plan a run was to be held to.
package struct PlanDrift: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Part: Hashable, Sendable {
        case definition
        case template
        case variables
        case reach(planned: Int, now: Int)
    }

    package var campaign: String
    package var parts: [Part]

    /// Nil when nothing drifted. The reach may grow by `guards.max_growth` and shrink down to `guards.min_reach`; a
    /// campaign without `max_growth` holds it to the very number.
    package init?(from planned: PlanToken, to now: PlanToken, _ campaign: Campaign) {
        self.campaign = campaign.name
        parts = []
        if planned.definition != now.definition { parts.append(.definition) }
        if planned.template != now.template { parts.append(.template) }
        if planned.variables != now.variables { parts.append(.variables) }
        if Self.hasDrifted(planned.reach, now.reach, campaign.guards) {
            parts.append(.reach(planned: planned.reach, now: now.reach))
        }
        if parts.isEmpty { return nil }
    }

    private static func hasDrifted(_ planned: Int, _ now: Int, _ guards: Campaign.Guards) -> Bool {
        guard let limit = guards.maxGrowthPercent else { return planned != now }
        return Percent.exceeds(limit, from: planned, to: now)
    }

    package var description: String {
        "campaign \(campaign) is not as planned: \(parts.map(words).joined(separator: "; ")). "
            + "Nothing is sent; look at `fanfare plan \(campaign)` again and give the hash it prints"
    }

    private func words(_ part: Part) -> String {
        switch part {
        case .definition: "the campaign file has changed"
        case .template: "the template has changed"
        case .variables: "the variables have other values"
        case .reach(let planned, let now):
            "the run would reach \(now.grouped) devices, \(Percent.growth(from: planned, to: now)) than the "
                + "\(planned.grouped) planned"
        }
    }
}

/// Short hashes of values that stay the same from one process, machine and version to the next: FNV-1a, 64 bits, over
/// the value's JSON with sorted keys, folded to 32 bits and written as 8 hex digits.
///
/// It tells people that something changed since they looked; it does not keep out somebody who wants a match.
enum StableHash {
    static func text(of value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let hash = FNV1a.hash(String(decoding: try encoder.encode(value), as: UTF8.self))
        let digits = String(UInt32(truncatingIfNeeded: hash ^ (hash >> 32)), radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}
