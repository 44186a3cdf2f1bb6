import Model

/// What the pipeline sends: an alert in four languages.
enum BenchmarkCampaign {
    static let topic = "com.example.wendercast"

    private enum Problem: Error {
        case badLocale
    }

    static func definition(plannedAt now: Timestamp) throws -> RunDefinition {
        var campaign = Campaign(name: "bench", topic: topic, pushType: .alert, template: "bench")
        campaign.expiresAfter = .seconds(4 * 3600)
        var template = Template(name: "bench")
        let texts = [
            ("en", "New on {{show}}", "{{title}} is out. Listen now."), ("de", "Neu bei {{show}}", "{{title}} ist da."),
            ("pt-BR", "Novidade em {{show}}", "{{title}} já está no ar."), ("fr", "Sur {{show}}", "{{title}} est là."),
        ]
        template.alert = .localized(
            try texts.map { locale, title, body in
                guard let tag = LocaleTag(locale) else { throw Problem.badLocale }
                return .init(
                    locale: tag, title: try TemplateText(parsing: title), subtitle: nil,
                    body: try TemplateText(parsing: body))
            })
        return RunDefinition(
            campaign: campaign, template: template, variables: ["show": "WenderCast", "title": "Episode 42"],
            plannedAt: now)
    }
}
