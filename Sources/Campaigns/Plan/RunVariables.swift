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
