import Model
import Store
import Campaigns
import Sending

/// One push to look at: its payload and everything that would go with it.
struct Rendering {
    let payload: String
    /// What a person should know besides.
    var remarks: [String] = []
    private let locale: String
    private let variant: String?
    private let headers: [Plan.Header]
    private let limit: Int
    private let device: StoredDevice?

    /// For a language; the fields of the device show their own names.
    init(_ definition: RunDefinition, _ renderer: PayloadRenderer, variant: Int?, locale: String?) {
        let index = renderer.choice(forLocale: locale).prototype
        payload = renderer.sample(index)
        self.locale = renderer.localeName(index)
        self.variant = variant.map { definition.campaign.variants[$0].name }
        headers = Plan.Header.all(definition)
        limit = definition.campaign.pushType.payloadMaxBytes
        device = nil
    }

    /// For a device: the very bytes.
    init(
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
            remarks.append("this device is \(device.status.rawValue): a run would not send it")
        }
        if definition.campaign.pushType.showsAlert, device.record.alertsAllowed == false {
            remarks.append("this device does not allow alerts: a run would not send it")
        }
    }

    var notes: [String] {
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

    /// The stable shape of `render --json`.
    struct JSON: Encodable {
        var payload: String
        var bytes: Int
        var limitBytes: Int
        var locale: String
        var variant: String?
        var headers: [String: String]
        var device: DeviceJSON?
        var remarks: [String]
    }

    var json: JSON {
        JSON(
            payload: payload, bytes: payload.utf8.count, limitBytes: limit, locale: locale, variant: variant,
            headers: Dictionary(headers.map { ($0.name, $0.value) }) { first, _ in first },
            device: device.map(DeviceJSON.init), remarks: remarks)
    }
}
