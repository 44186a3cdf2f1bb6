import CampaignFiles
import Foundation
package import Model
import Rendering

/// The notifications that phones show for a campaign, one for each text. They are taken from the payloads that would be
/// sent.
package struct PreviewNotifications: Sendable {
    /// - Parameter definition: the run to preview. Variables that have no value yet show their names.
    package static func all(_ definition: RunDefinition) throws -> PreviewResult {
        let (shown, unset) = definition.filledForShow()
        let renderers = try VariantRenderers(shown)
        let campaign = shown.campaign
        let variants: [Int?] = campaign.variants.isEmpty ? [nil] : campaign.variants.indices.map(\.self)
        let notifications = variants.flatMap { variant in
            renderers[variant].prototypes.indices.map { index in
                PreviewResult.Notification(
                    payload: renderers[variant].sample(index), locale: renderers[variant].localeName(index),
                    variant: variant.map { campaign.variants[$0].name },
                    payloadMaxBytes: renderers[variant].prototypes[index]
                        .worstCaseByteCount(fieldMaxBytes: Planner.fieldMaxBytes),
                    limitBytes: campaign.pushType.payloadMaxBytes)
            }
        }
        return PreviewResult(notifications: notifications, unsetVariables: unset)
    }
}

/// The stable shape of what phones show; keys are written in snake_case.
package struct PreviewResult: Codable, Hashable, Sendable {
    package struct Notification: Codable, Hashable, Sendable {
        /// `all` if nothing is localized.
        package var locale: String
        package var variant: String?
        package var title: String?
        package var subtitle: String?
        package var body: String?
        /// Texts that the app itself looks up, by the key of `aps.alert`: `loc-key`, `title-loc-key`.
        package var lookedUp: [String: String]
        /// The category whose buttons the app shows; absent if there is none.
        package var category: String?
        /// The address of the picture that the app's extension loads; absent if there is none.
        package var picture: String?
        package var payload: String
        package var bytes: Int
        /// The size with long device fields.
        package var payloadMaxBytes: Int
        package var limitBytes: Int

        /// Whether the phone shows anything.
        package var isVisible: Bool { title != nil || subtitle != nil || body != nil || !lookedUp.isEmpty }

        package init(payload: String, locale: String, variant: String?, payloadMaxBytes: Int, limitBytes: Int) {
            self.payload = payload
            self.locale = locale
            self.variant = variant
            self.payloadMaxBytes = payloadMaxBytes
            self.limitBytes = limitBytes
            bytes = payload.utf8.count
            lookedUp = [:]
            let root = (try? JSONSerialization.jsonObject(with: Data(payload.utf8))) as? [String: Any]
            let system = root?["aps"] as? [String: Any]
            category = system?["category"] as? String
            if system?["mutable-content"] as? Int == 1 {
                picture = ComposerFields.pictureKeys.lazy.compactMap { root?[$0] as? String }.first { !$0.isEmpty }
            }
            let alert = system?["alert"]
            if let text = alert as? String {
                body = text
            } else if let parts = alert as? [String: Any] {
                title = parts["title"] as? String
                subtitle = parts["subtitle"] as? String
                body = parts["body"] as? String
                lookedUp = Self.lookedUp(parts)
            }
        }

        /// Creates a notification from a push that was rendered for a device or a language.
        package init(_ rendering: RenderingResult) {
            self.init(
                payload: rendering.payload, locale: rendering.locale, variant: rendering.variant,
                payloadMaxBytes: rendering.bytes, limitBytes: rendering.limitBytes)
        }

        private static func lookedUp(_ alert: [String: Any]) -> [String: String] {
            var texts: [String: String] = [:]
            for (key, arguments) in [
                ("loc-key", "loc-args"), ("title-loc-key", "title-loc-args"), ("subtitle-loc-key", "subtitle-loc-args"),
            ] {
                guard let name = alert[key] as? String else { continue }
                let values = (alert[arguments] as? [Any])?.map { "\($0)" } ?? []
                texts[key] = values.isEmpty ? name : "\(name) (\(values.joined(separator: ", ")))"
            }
            return texts
        }
    }

    package var notifications: [Notification]
    /// The variables that have no value yet. Their names appear in the texts.
    package var unsetVariables: [String]
}
