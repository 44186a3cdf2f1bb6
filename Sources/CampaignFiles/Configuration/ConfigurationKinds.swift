import Model

extension ValueKind where Value == String {
    /// A team or key id as Apple gives it out.
    static var appleID: ValueKind {
        parsed("10 letters and digits", example: "ABC123DEFG", form: .patternOrNumber("^[A-Za-z0-9]{10}$")) { text in
            let fits = text.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
            }
            return fits && text.utf8.count == 10 ? text : nil
        }
    }
}

extension ValueKind where Value == Configuration.App {
    static var app: ValueKind {
        .object(ConfigurationKeys.App.shape) { reader in
            let topic = reader[ConfigurationKeys.App.topic]
            let credential = AppReading.credential(reader)
            var app = Configuration.App(
                topic: topic ?? "", credential: credential ?? .certificate(certificatePath: "", privateKeyPath: nil))
            app.connections = reader[ConfigurationKeys.App.connections] ?? app.connections
            app.silentBudget = reader[ConfigurationKeys.App.silentBudget] ?? app.silentBudget
            app.pace = reader[ConfigurationKeys.App.pace]
            app.endpoints = reader[ConfigurationKeys.App.endpoints] ?? app.endpoints
            return topic == nil || credential == nil ? nil : app
        }
    }
}

private enum AppReading {
    static let advice = "give team_id, key_id and key_path, or certificate_path"

    /// A key or a certificate, whole and not both.
    static func credential(_ reader: ObjectReader) -> Configuration.Credential? {
        let keyNames = ["team_id", "key_id", "key_path"]
        let missing = keyNames.filter { reader.field($0) == nil }
        let team = reader[ConfigurationKeys.App.teamID]
        let key = reader[ConfigurationKeys.App.keyID]
        let path = reader[ConfigurationKeys.App.keyPath]
        let certificate = reader[ConfigurationKeys.App.certificatePath]
        let privateKey = reader[ConfigurationKeys.App.privateKeyPath]
        let hasCertificate = reader.field("certificate_path") != nil
        if hasCertificate || reader.field("private_key_path") != nil {
            guard hasCertificate else {
                reader.findings.error("private_key_path without certificate_path", advice, at: reader.place)
                return nil
            }
            guard missing.count == keyNames.count else {
                reader.findings.error("an app has a key or a certificate, not both", advice, at: reader.place)
                return nil
            }
            return certificate.map { .certificate(certificatePath: $0, privateKeyPath: privateKey) }
        }
        guard missing.isEmpty else {
            let what =
                missing.count == keyNames.count
                ? "an app needs a key or a certificate" : "\(missing.joined(separator: " and ")) missing"
            reader.findings.error(what, advice, at: reader.place)
            return nil
        }
        guard let team, let key, let path else { return nil }
        return .key(teamID: team, keyID: key, path: path)
    }
}

extension ValueKind where Value == Configuration.SilentBudget {
    static var silentBudget: ValueKind {
        .object(ConfigurationKeys.SilentBudget.shape) { reader in
            var budget = Configuration.SilentBudget()
            budget.limit = reader[ConfigurationKeys.SilentBudget.limit] ?? budget.limit
            budget.window = reader[ConfigurationKeys.SilentBudget.window] ?? budget.window
            return budget
        }
    }
}

extension ValueKind where Value == Configuration.Endpoints {
    static var endpoints: ValueKind {
        .object(ConfigurationKeys.Endpoints.shape) { reader in
            Configuration.Endpoints(
                production: reader[ConfigurationKeys.Endpoints.production],
                sandbox: reader[ConfigurationKeys.Endpoints.sandbox], trust: reader[ConfigurationKeys.Endpoints.trust])
        }
    }
}

extension ValueKind where Value == Configuration.HTTP {
    static var http: ValueKind {
        .object(ConfigurationKeys.HTTP.shape) { reader in
            var http = Configuration.HTTP()
            http.listen = reader[ConfigurationKeys.HTTP.listen] ?? http.listen
            return http
        }
    }
}

extension ValueKind where Value == Configuration.Webhook {
    static var webhook: ValueKind {
        .object(ConfigurationKeys.Webhook.shape) { reader in
            let url = reader[ConfigurationKeys.Webhook.url]
            let secretPath = reader[ConfigurationKeys.Webhook.secretPath]
            let events = reader[ConfigurationKeys.Webhook.events]
            guard let url, let secretPath else { return nil }
            return Configuration.Webhook(
                url: url, secretPath: secretPath, events: events ?? Configuration.Webhook.Event.allCases)
        }
    }
}

extension ValueKind where Value == Duration {
    static var retention: ValueKind {
        .object(ConfigurationKeys.Retention.shape) { $0[ConfigurationKeys.Retention.outcomes] }
    }
}
