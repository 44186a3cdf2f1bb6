package import Model
package import Store

/// The values that people gave for coming starts of schedules, by campaign and occurrence.
package struct StartValues: Sendable {
    private struct Start: Hashable {
        var campaign: String
        var occurrence: String
    }

    private var values: [Start: [String: String]] = [:]
    /// The moment after which the next start is looked for; `nil` if the values are unknown.
    package private(set) var after: Timestamp?

    /// No values are known.
    package init() {}

    package init(_ found: [OccurrenceValues], after moment: Timestamp) {
        after = moment
        for given in found { values[Start(campaign: given.campaign, occurrence: given.occurrence)] = given.variables }
    }

    /// Reads the values of all starts that are not long over.
    package static func read(_ store: any OccurrenceValueLog, now: Timestamp) async throws -> StartValues {
        StartValues(try await store.values(startingFrom: now - Agenda.lookBackMax), after: now)
    }

    /// Returns the values of one start of a campaign; empty if none were given. A variable that the campaign no longer
    /// declares is left out.
    package func values(of campaign: Campaign, _ occurrence: Occurrence) -> [String: String] {
        campaign.declared(values[Start(campaign: campaign.name, occurrence: occurrence.key), default: [:]])
    }
}

extension Campaign {
    /// Returns the values of the variables that the campaign declares.
    package func declared(_ values: [String: String]) -> [String: String] {
        values.filter { variables[$0.key] != nil }
    }
}

extension OccurrenceValueLog {
    /// Returns the definition with the values that a person gave for a start of the schedule, except where the caller
    /// gives others.
    ///
    /// - Parameters:
    ///   - typed: the variables whose values the caller gives. They count also where they are the file's defaults.
    ///   - key: the key of the occurrence.
    func definition(
        _ given: RunDefinition, typed: Set<String>, occurrence key: String
    ) async throws -> RunDefinition {
        guard let stored = try await values(campaign: given.campaign.name, occurrence: key) else { return given }
        var definition = given
        for (name, value) in given.campaign.declared(stored.variables) where !typed.contains(name) {
            definition.variables[name] = value
        }
        return definition
    }
}

extension ReadyCampaign {
    /// Returns the variables without a value, because of which this start of the campaign fails.
    package func missingValues(at occurrence: Occurrence, _ values: StartValues) -> [String] {
        campaign.missingValues(
            in: [template] + variantTemplates.values, given: values.values(of: campaign, occurrence))
    }
}
