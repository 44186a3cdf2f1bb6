import TestSupport

extension Installation {
    /// Writes the campaign `weekend`, with feedback, two variants and a holdout.
    ///
    /// - Parameter more: further keys.
    func writeWeekend(_ more: String = "") throws {
        try folder.write(
            """
            campaign: weekend
            topic: \(Self.topic)
            push_type: alert
            template: new-podcast
            audience: everyone
            variables: {show: S, title: T, link_url: "https://example.com/1"}
            expires_after: 4h
            holdout: 20%
            variants:
              a: {weight: 1, template: new-podcast}
              b: {weight: 1, template: new-podcast}
            feedback: true
            \(more)

            """, to: "campaigns/weekend.yaml")
    }
}
