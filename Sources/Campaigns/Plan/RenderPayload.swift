package import Model
import Rendering
package import Store

/// Renders one push of a campaign, as it would be sent.
package struct RenderPayload: Sendable {
    /// Renders the push for a language, or for the default language if `locale` is `nil`.
    package static func rendering(
        _ definition: RunDefinition, locale: String?, variant: String?
    ) throws -> Rendering {
        if let locale, LocaleTag(locale) == nil {
            throw Failure(.invalidData, "\"\(locale)\" is not a BCP 47 language tag; write for instance de or pt-BR")
        }
        let renderers = try VariantRenderers(definition)
        let index =
            try definition.campaign.variantIndex(named: variant) ?? (definition.campaign.variants.isEmpty ? nil : 0)
        return Rendering(definition, renderers[index], variant: index, locale: locale)
    }

    /// Renders the push for a device, with its own language, variant, fields and badge.
    package static func rendering(
        _ definition: RunDefinition, device text: String, variant: String?, in store: any DeviceRegistry,
        sees: (_ topic: String) -> Bool = { _ in true }
    ) async throws -> Rendering {
        let renderers = try VariantRenderers(definition)
        let found = try await DeviceLookup.device(
            text, topic: definition.campaign.deviceTopic, in: store, sees: sees)
        let split = CampaignSplit(definition.campaign)
        let number = split.number(of: found.id, user: found.record.userID)
        let index = try definition.campaign.variantIndex(named: variant) ?? split.variant(of: number)
        let fields = try await store.fields(renderers.fields, ofDevice: found.id)
        var rendering = Rendering(definition, renderers[index], variant: index, found, fields: fields)
        if split.isHeldOut(number) {
            rendering.remarks.append("this device is in the holdout: a run would not send to it")
        }
        return rendering
    }
}

/// One rendered push: its payload, headers and remarks.
package struct Rendering {
    package let payload: String
    /// Further information for a person.
    package var remarks: [String] = []
    private let locale: String
    private let variant: String?
    private let headers: [Plan.Header]
    private let limit: Int
    private let device: StoredDevice?

    /// Creates the rendering for a language. Device fields show their own names.
    fileprivate init(_ definition: RunDefinition, _ renderer: PayloadRenderer, variant: Int?, locale: String?) {
        let index = renderer.choice(forLocale: locale).prototype
        payload = renderer.sample(index)
        self.locale = renderer.localeName(index)
        self.variant = variant.map { definition.campaign.variants[$0].name }
        headers = Plan.Header.all(definition)
        limit = definition.campaign.pushType.payloadMaxBytes
        device = nil
    }

    /// Creates the rendering for a device, with the exact bytes that would be sent.
    fileprivate init(
        _ definition: RunDefinition, _ renderer: PayloadRenderer, variant: Int?, _ device: StoredDevice,
        fields: [String?]
    ) {
        let index = renderer.choice(forLocale: device.record.locale).prototype
        let badge = device.badge + renderer.badgeIncrement
        payload = String(decoding: renderer.prototypes[index].payload(fields: fields, badge: badge), as: UTF8.self)
        self.locale = renderer.localeName(index)
        self.variant = variant.map { definition.campaign.variants[$0].name }
        headers = Plan.Header.all(definition)
        limit = definition.campaign.pushType.payloadMaxBytes
        self.device = device
        if device.status != .active {
            remarks.append("this device is \(device.status.rawValue): a run would not send to it")
        }
        if definition.campaign.pushType.showsAlert, device.record.alertsAllowed == false {
            remarks.append("this device does not allow alerts: a run would not send to it")
        }
    }

    package var notes: [String] {
        let bytes = payload.utf8.count
        var head = "\(variant.map { "variant \($0), " } ?? "")locale \(locale): \(bytes) of \(limit) bytes"
        if bytes > limit { head += ", too large: it would not be sent (payload_too_large)" }
        var lines = [head]
        if let device {
            lines.append("  :path: /3/device/\(device.record.token.redacted)  (\(device.record.environment.rawValue))")
        }
        lines += headers.map { "  \($0.name): \($0.value)" + ($0.meaning.isEmpty ? "" : "  (\($0.meaning))") }
        return lines + remarks
    }

    package var result: RenderingResult {
        RenderingResult(
            payload: payload, bytes: payload.utf8.count, limitBytes: limit, locale: locale, variant: variant,
            headers: Dictionary(headers.map { ($0.name, $0.value) }) { first, _ in first },
            device: device.map(DeviceResult.init), remarks: remarks)
    }
}

/// The stable shape of `render --json`.
package struct RenderingResult: Codable, Hashable, Sendable {
    package var payload: String
    package var bytes: Int
    package var limitBytes: Int
    package var locale: String
    package var variant: String?
    package var headers: [String: String]
    package var device: DeviceResult?
    package var remarks: [String]
}
