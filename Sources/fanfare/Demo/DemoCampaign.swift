import Model

/// The demo's campaign that compares two texts with each other, and with devices that get none.
enum DemoCampaign {
    static let name = "two-texts"

    static var files: [(name: String, text: String)] {
        [
            (
                "campaigns/\(name).yaml",
                """
                # Which text do more people open, and do they listen because of it?
                campaign: \(name)
                topic: \(DemoDevices.topic)
                push_type: alert
                template: question                  # required, although each variant names its own
                audience: everyone
                expires_after: 4h
                holdout: 20%                        # these devices get nothing, for comparison
                variants:
                  question: {weight: 50, template: question}
                  statement: {weight: 50, template: statement}
                feedback: true                      # the app reports opens
                conversion: {event: \(DemoPeople.goal), within: \(WrittenDuration.text(DemoPeople.within))}

                """
            ),
            ("templates/question.yaml", template("question", "What did the lighthouse keeper hear?")),
            ("templates/statement.yaml", template("statement", "Episode 43 is out")),
        ]
    }

    private static func template(_ name: String, _ title: String) -> String {
        """
        template: \(name)
        default_locale: en
        alert:
          en: {title: "\(title)", body: "The Quiet Reef, 32 minutes"}

        """
    }
}
