package import Model

/// Checks of a campaign against the configuration: whether its app is known and its credential may send it.
package enum CredentialRules {
    /// Each diagnostic names the campaign's file.
    package static func check(_ campaign: CampaignSource, _ configuration: Configuration) -> [Diagnostic] {
        let findings = Findings(path: campaign.path)
        let topic = campaign.campaign.topic
        guard let app = configuration.apps.first(where: { $0.topic == topic }) else {
            let nearest = Suggestion.nearest(to: topic, among: configuration.apps.map(\.topic))
            findings.error(
                "no app in the configuration has the topic \(quoted(topic))",
                nearest.map { "did you mean \(quoted($0))?" } ?? "add it under apps",
                at: campaign.places["topic"] ?? Place())
            return findings.diagnostics
        }
        let pushType = campaign.campaign.pushType
        if pushType.needsProviderToken, case .certificate = app.credential {
            findings.error(
                "push_type \(pushType.rawValue) cannot be sent with a certificate",
                "give the app team_id, key_id and key_path in the configuration",
                at: campaign.places["push_type"] ?? Place())
        }
        return findings.diagnostics
    }
}
