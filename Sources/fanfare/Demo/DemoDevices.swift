import Foundation
import Model
import Campaigns

/// The demo's devices, with fixed shares of every kind of trouble. Each run of the demo gets the same tokens.
struct DemoDevices {
    static let topic = "com.example.wendercast"
    private static let hour: Duration = .seconds(3600)

    /// The places of the devices: 8 locales over 6 time zones.
    private static let places: [(locale: String, country: String, zone: String)] = [
        ("en-US", "US", "America/New_York"), ("en-GB", "GB", "Europe/London"), ("de-DE", "DE", "Europe/Berlin"),
        ("de-AT", "AT", "Europe/Berlin"), ("pt-BR", "BR", "America/Sao_Paulo"), ("pt-PT", "PT", "Europe/London"),
        ("es-MX", "MX", "America/Mexico_City"), ("ja-JP", "JP", "Asia/Tokyo"),
    ]

    /// The special state of a device at APNs. Every other device has an ordinary token.
    enum Trouble: String, CaseIterable {
        /// 410, inactive since yesterday.
        case dead
        /// 410, but the app has registered again since, so the device must be kept.
        case deadBeforeRegistration = "dead before its last registration"
        /// A token of another environment: 400 BadDeviceToken.
        case foreign
        /// APNs responds after 150 ms.
        case slow
    }

    struct Device {
        var token: String
        var line: String
        var registryLine: String?
        var installation: String
        var trouble: Trouble?
        var isFan: Bool
    }

    private let now: Timestamp
    private var generator = SeededGenerator(seed: 20_261_121)

    init(now: Timestamp) {
        self.now = now
    }

    static let header =
        "token,environment,topic,installation_id,user_id,locale,time_zone,country,app_version,os_version,model,"
        + "alerts_allowed,registered_at,last_seen_at,tags"

    /// Returns the device with this number, from 0.
    mutating func device(_ number: Int) -> Device {
        let place = Self.places[number % Self.places.count]
        let token = token()
        let environment = number % 10 == 9 ? "sandbox" : "production"
        let trouble = Self.trouble(of: number)
        let installation = "install-\(number)"
        let registeredAt = now - Self.hour * (24 * (30 + number % 300))
        let version = number % 20 == 7 ? "4.1" : "4.\(2 + number % 11)"
        let line = CSVLine.text([
            token, environment, Self.topic, installation, "user-\(number)", place.locale, place.zone, place.country,
            version, "26.\(number % 3)", "iPhone17,\(1 + number % 4)", number % 33 == 5 ? "false" : "true",
            registeredAt.iso8601, (now - Self.hour * (number % 1500)).iso8601, number % 4 == 0 ? "beta" : "",
        ])
        return Device(
            token: token, line: line,
            registryLine: registryLine(token, environment, trouble, registeredAt: registeredAt),
            installation: installation, trouble: trouble, isFan: number % 5 != 3)
    }

    private static func trouble(of number: Int) -> Trouble? {
        switch number % 400 {
        case 1, 51, 101, 151, 201, 251, 301, 351: .dead
        case 222: .deadBeforeRegistration
        case 12, 112, 212, 312: .foreign
        case 24, 124, 224, 324: .slow
        default: nil
        }
    }

    private func registryLine(
        _ token: String, _ environment: String, _ trouble: Trouble?, registeredAt: Timestamp
    ) -> String? {
        var extra = ""
        switch trouble {
        case nil: break
        case .dead: extra = ",\"gone_since\":\((now - Self.hour * 24).milliseconds)"
        case .deadBeforeRegistration: extra = ",\"gone_since\":\((registeredAt - Self.hour).milliseconds)"
        case .foreign: return nil
        case .slow: extra = ",\"delay_ms\":150"
        }
        return #"{"token":"\#(token)","environment":"\#(environment)","topic":"\#(Self.topic)"\#(extra)}"#
    }

    private mutating func token() -> String {
        var hex = ""
        for _ in 0..<4 {
            let word = String(generator.next(), radix: 16)
            hex += String(repeating: "0", count: 16 - word.count) + word
        }
        return hex
    }
}
