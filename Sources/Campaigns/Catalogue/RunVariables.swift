package import Model

/// The values a run's placeholders get: the campaign's defaults, overridden by what was given at the start.
package enum RunVariables {
    package enum VariableError: Error, Hashable, CustomStringConvertible {
        case unknown(String, campaign: String, suggestion: String?)

        package var description: String {
            switch self {
            case .unknown(let name, let campaign, let suggestion):
                "campaign \(campaign) has no variable \"\(name)\"; "
                    + (suggestion.map { "did you mean \"\($0)\"?" } ?? "declare it under `variables`")
            }
        }
    }

    package static func merged(
        _ campaign: Campaign, with given: [String: String]
    ) throws(VariableError) -> [String: String] {
        for name in given.keys.sorted() where campaign.variables[name] == nil {
            let suggestion = Suggestion.nearest(to: name, among: campaign.variables.keys)
            throw .unknown(name, campaign: campaign.name, suggestion: suggestion)
        }
        return campaign.variables.merging(given) { $1 }
    }
}

extension RunDefinition {
    /// Variables the templates use that have no value yet, and the definition with their names in angle brackets
    /// in their place, to look at.
    package func filledForShow() -> (definition: RunDefinition, unset: [String]) {
        let used = ([template] + variantTemplates.values).reduce(into: Set()) { $0.formUnion($1.variables) }
        let unset = used.filter { variables[$0, default: ""].isEmpty }.sorted()
        var definition = self
        for name in unset { definition.variables[name] = "<\(name)>" }
        return (definition, unset)
    }
}

extension Campaign {
    /// The variant that was asked for by name; nil when none was.
    package func variantIndex(named name: String?) throws -> Int? {
        guard let name else { return nil }
        if let index = variants.firstIndex(where: { $0.name == name }) { return index }
        let names = variants.map(\.name)
        let advice =
            Suggestion.nearest(to: name, among: names).map { "did you mean \"\($0)\"?" }
            ?? (names.isEmpty ? "it has none" : "it has \(names.joined(separator: ", "))")
        throw Failure(.notFound, "campaign \(self.name) has no variant \"\(name)\"; \(advice)")
    }
}
