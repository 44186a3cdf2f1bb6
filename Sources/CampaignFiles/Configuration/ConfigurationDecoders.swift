import Model

/// The keys of `fanfare.yaml`.
package enum ConfigurationKeys {
    static let store = Key(
        "store", .store, required: true,
        "The SQLite file; or a database on PostgreSQL 15 or later, postgres://user@host:5432/database. Its password is "
            + "in the file named by ?password_file=/path, in the PGPASSFILE file, or in the URL.")
    static let campaigns = Key("campaigns", .path("campaigns"), "The folder with campaign files (default: campaigns).")
    static let templates = Key("templates", .path("templates"), "The folder with template files (default: templates).")
    static let apps = Key("apps", .list(of: .app), required: true, "The apps, each with its access to APNs.")
    static let transport = Key(
        "transport", ValueDecoder<Configuration.Transport>.word,
        "The HTTP client: native, or curl (libcurl) if the connection to APNs goes through a proxy.")
    static let pace = Key("pace", .pace, "The maximum rate of all apps together.")
    static let http = Key("http", .http, "The daemon's HTTP server.")
    static let webhooks = Key(
        "webhooks", .list(of: .webhook), "Where to report the outcomes of runs, and the approvals of plans.")
    static let retention = Key("retention", .retention, "The retention of outcomes and reports.")
    static let approvals = Key(
        "approvals", .approvals, "The signatures that a plan needs above a given reach (default: none).")
    static let volumeBrake = Key(
        "volume_brake", .volumeBrake, "When an unusually large run waits for a person (default: never)."
    )
    static let success = Key(
        "success", .successLimits, "When a finished run counts as unsuccessful, so that its command exits with 3 or 76."
    )
    static let testDevices = Key(
        "test_devices", .testDevices,
        "The segment of the devices that test-send may reach, or names of devices with their installation ids, which pages "
            + "and --to offer (default: any; required with `approvals`).")
    static let feeds = Key("feeds", .feeds, "Addresses that feeds and links in files may reach.")
    static let log = Key("log", .log, "The level and format of the log.")
    static let people = Key("people", .people, "The accounts of each person, for approvals.")

    /// The shape of the whole configuration file.
    package static let shape = ObjectShape(
        "configuration", "The locations of files, and the access to APNs for each app.",
        [
            store.shape, campaigns.shape, templates.shape, apps.shape, transport.shape, pace.shape, http.shape,
            webhooks.shape, retention.shape, approvals.shape, people.shape, volumeBrake.shape, success.shape,
            testDevices.shape, feeds.shape, log.shape,
        ])

    enum App {
        static let topic = Key("topic", .topic, required: true, "The app's bundle id.")
        static let teamID = Key("team_id", .appleID, "The 10-character team id, with key_id and key_path.")
        static let keyID = Key("key_id", .appleID, "The 10-character key id.")
        static let keyPath = Key("key_path", .path("keys/AuthKey_ABC123DEFG.p8"), "The key file AuthKey_….p8.")
        static let keys = Key(
            "keys", .keys,
            "A key for each environment, with team_id: for Apple's newer keys, which work in one environment only.")
        static let certificatePath = Key(
            "certificate_path", .path("keys/app.p12"), "A certificate (PEM or .p12) in place of a key.")
        static let certificatePasswordPath = Key(
            "certificate_password_path", .path("keys/app.password"),
            "A file with the password of a .p12 (default: $FANFARE_CERTIFICATE_PASSWORD, if set).")
        static let privateKeyPath = Key("private_key_path", .path("app.key"), "The certificate's private key (PEM).")
        static let connections = Key("connections", .integer(1...64), "The number of connections per environment.")
        static let silentBudget = Key("silent_budget", .silentBudget, "The limit of background pushes per device.")
        static let frequencyCaps = Key(
            "frequency_caps", .list(of: .frequencyCap),
            "The maximum number of visible pushes per device or user, by class of campaign.")
        static let feedback = Key(
            "feedback", .feedback,
            "The default of feedback for the app's alert and background campaigns; a campaign file can override it.")
        static let pace = Key("pace", .pace, "The maximum rate of all runs of the app together.")
        static let endpoints = Key("endpoints", .endpoints, "Hosts in place of Apple's, for a simulator or relay.")
        static let shape = ObjectShape(
            "apps", "One app.",
            [
                topic.shape, teamID.shape, keyID.shape, keyPath.shape, keys.shape, certificatePath.shape,
                certificatePasswordPath.shape, privateKeyPath.shape, connections.shape, silentBudget.shape,
                frequencyCaps.shape, feedback.shape, pace.shape, endpoints.shape,
            ])
    }

    enum Keys {
        static let production = Key("production", .keyFile, "The key for production.")
        static let sandbox = Key("sandbox", .keyFile, "The key for the sandbox.")
        static let shape = ObjectShape(
            "keys", "A key for each environment; Fanfare does not send to an environment without a key.",
            [production.shape, sandbox.shape])
        static let keyID = Key("key_id", .appleID, required: true, "The 10-character key id.")
        static let keyPath = Key(
            "key_path", .path("keys/AuthKey_ABC123DEFG.p8"), required: true, "The key file AuthKey_….p8.")
        static let keyShape = ObjectShape("key", "A key of one environment.", [keyID.shape, keyPath.shape])
    }

    enum SilentBudget {
        static let limit = Key("limit", .integer(1...1000), "The number of background pushes per device in a window.")
        static let window = Key(
            "window", .duration(.seconds(60)...Configuration.SilentBudget.windowMax, example: "1h"),
            "The length of the window.")
        static let shape = ObjectShape(
            "silent_budget", "The limit of background pushes per device.", [limit.shape, window.shape])
    }

    enum Endpoints {
        static let production = Key("production", .hostAndPort, "host:port in place of Apple's production host.")
        static let sandbox = Key("sandbox", .hostAndPort, "host:port in place of Apple's sandbox host.")
        static let trust = Key("trust", .path("/etc/fanfare/ca.pem"), "The CA file (PEM) to trust for these hosts.")
        static let shape = ObjectShape(
            "endpoints", "Hosts in place of Apple's.", [production.shape, sandbox.shape, trust.shape])
    }

    enum HTTP {
        static let listen = Key("listen", .hostAndPort, "host:port to listen on.")
        static let editing = Key(
            "editing", .boolean, "Allow editing of campaign and template files through the pages and the API.")
        static let proxy = Key("proxy", .proxy, "A proxy in front of the daemon that signs people in.")
        static let openMetrics = Key(
            "open_metrics", .boolean,
            "Show campaigns and topics in /metrics to callers without a token on other machines.")
        static let shape = ObjectShape(
            "http", "The daemon's HTTP server.", [listen.shape, editing.shape, proxy.shape, openMetrics.shape])
    }

    enum Proxy {
        static let addresses = Key(
            "addresses", .list(of: .text), required: true, "IP addresses of proxies whose user header is trusted.")
        static let userHeader = Key(
            "user_header", .text, "The header with the user's name (default: X-Forwarded-User).")
        static let role = Key(
            "role", ValueDecoder<AccessRole>.word, "The role of the users that the proxy names (default: viewer).")
        static let roleHeader = Key("role_header", .text, "A header with the user's role, in place of `role`.")
        static let removesHeaders = Key(
            "removes_headers", .boolean,
            "Confirm that the proxy removes user_header and role_header from clients' requests.")
        static let shape = ObjectShape(
            "proxy", "A reverse proxy that signs users in.",
            [addresses.shape, userHeader.shape, role.shape, roleHeader.shape, removesHeaders.shape])
    }

    enum Webhook {
        static let url = Key("url", .webAddress, required: true, "The address to post to.")
        static let secretPath = Key(
            "secret_path", .path("keys/webhook.secret"), required: true,
            "A file with the secret that signs the messages.")
        static let events = Key(
            "events", .list(of: ValueDecoder<Configuration.Webhook.Event>.word), "The events to report (default: all).")
        static let shape = ObjectShape("webhooks", "One webhook.", [url.shape, secretPath.shape, events.shape])
    }

    enum VolumeBrake {
        static let times = Key(
            "times", .integer(2...10_000), required: true,
            "A run waits if its campaign, person or token would send this many times the weekday's usual number.")
        static let atLeast = Key(
            "at_least", .integer(1...Int.max), "The number of pushes per day below which no run waits (default: 1000).")
        static let maxGrowth = Key(
            "max_growth", .percent(0...100_000), "A run waits if it exceeds the last run's reach by more than this.")
        static let shape = ObjectShape(
            "volume_brake", "When an unusually large run waits for a person.",
            [times.shape, atLeast.shape, maxGrowth.shape])
    }

    enum Feeds {
        static let allow = Key(
            "allow", .list(of: .addressRange),
            "Addresses besides the public ones: 10.1.2.3, 10.0.0.0/8 or fd00::/8 (default: none).")
        static let proxy = Key(
            "proxy", .boolean,
            "Fetch feeds and links through the proxy that http_proxy and https_proxy name (default: false). The proxy "
                + "must refuse private addresses.")
        static let shape = ObjectShape(
            "feeds", "Addresses that feeds and links in files may reach.", [allow.shape, proxy.shape])
    }

    enum Retention {
        static let outcomes = Key(
            "outcomes", .duration(.seconds(86_400) ... .seconds(36_500 * 86_400), example: "400d"),
            "The time for which per-token outcomes are kept.")
        static let events = Key(
            "events", .duration(.seconds(86_400) ... .seconds(36_500 * 86_400), example: "400d"),
            "The time for which reports of apps are kept (default: 400d). The counts of runs stay.")
        static let shape = ObjectShape(
            "retention", "How long Fanfare keeps data.", [outcomes.shape, events.shape])
    }
}

extension ValueDecoder where Value == String {
    /// A team or key id, as Apple issues it.
    static var appleID: ValueDecoder {
        parsed("10 letters and digits", example: "ABC123DEFG", form: .patternOrNumber("^[A-Za-z0-9]{10}$")) { text in
            text.utf8.count == 10 && text.utf8.allSatisfy(\.isLetterOrDigit) ? text : nil
        }
    }
}

extension ValueDecoder where Value == Configuration.App {
    static var app: ValueDecoder {
        .object(ConfigurationKeys.App.shape) { reader in
            let topic = reader[ConfigurationKeys.App.topic]
            let credential = CredentialDecoder.credential(reader)
            var app = Configuration.App(
                topic: topic ?? "", credential: credential ?? .certificate(certificatePath: "", privateKeyPath: nil))
            app.connections = reader[ConfigurationKeys.App.connections] ?? app.connections
            app.silentBudget = reader[ConfigurationKeys.App.silentBudget] ?? app.silentBudget
            app.frequencyCaps = reader[ConfigurationKeys.App.frequencyCaps] ?? []
            app.feedback = reader[ConfigurationKeys.App.feedback] ?? nil
            app.pace = reader[ConfigurationKeys.App.pace]
            app.endpoints = reader[ConfigurationKeys.App.endpoints] ?? app.endpoints
            return topic == nil || credential == nil ? nil : app
        }
    }
}

extension ValueDecoder where Value == [PushEnvironment: Configuration.KeyFile] {
    static var keys: ValueDecoder {
        .object(ConfigurationKeys.Keys.shape) { reader in
            let keys = [
                PushEnvironment.production: reader[ConfigurationKeys.Keys.production],
                .sandbox: reader[ConfigurationKeys.Keys.sandbox],
            ].compactMapValues(\.self)
            if reader.locations.isEmpty {
                reader.collector.error(
                    "keys names no environment", "give production, sandbox or both, each with key_id and key_path",
                    at: reader.location)
            }
            return keys.isEmpty ? nil : keys
        }
    }
}

extension ValueDecoder where Value == Configuration.KeyFile {
    static var keyFile: ValueDecoder {
        .object(ConfigurationKeys.Keys.keyShape) { reader in
            let id = reader[ConfigurationKeys.Keys.keyID]
            let path = reader[ConfigurationKeys.Keys.keyPath]
            guard let id, let path else { return nil }
            return Configuration.KeyFile(id: id, path: path)
        }
    }
}

/// A credential: a key, a key for each environment, or a certificate. The file must contain exactly one of them,
/// complete.
private struct CredentialDecoder {
    static let advice = "give team_id, key_id and key_path, or certificate_path"
    private static let singleNames = ["key_id", "key_path"]

    let reader: ObjectReader

    static func credential(_ reader: ObjectReader) -> Configuration.Credential? {
        let decoder = CredentialDecoder(reader: reader)
        let certificateNames = ["certificate_path", "private_key_path", "certificate_password_path"]
        if certificateNames.contains(where: decoder.has) { return decoder.certificate() }
        return decoder.has("keys") ? decoder.keys() : decoder.key()
    }

    private func has(_ name: String) -> Bool { reader.field(name) != nil }

    private func certificate() -> Configuration.Credential? {
        let path = reader[ConfigurationKeys.App.certificatePath]
        let privateKey = reader[ConfigurationKeys.App.privateKeyPath]
        let password = reader[ConfigurationKeys.App.certificatePasswordPath]
        guard has("certificate_path") else {
            let name = has("private_key_path") ? "private_key_path" : "certificate_password_path"
            reader.collector.error("\(name) without certificate_path", Self.advice, at: reader.location)
            return nil
        }
        guard !(["team_id", "keys"] + Self.singleNames).contains(where: has) else {
            reader.collector.error("an app has a key or a certificate, not both", Self.advice, at: reader.location)
            return nil
        }
        return path.map { .certificate(certificatePath: $0, privateKeyPath: privateKey, passwordPath: password) }
    }

    private func keys() -> Configuration.Credential? {
        let team = reader[ConfigurationKeys.App.teamID]
        let keys = reader[ConfigurationKeys.App.keys]
        let location = reader.keyLocation("keys") ?? reader.location
        let doubled = Self.singleNames.filter(has)
        guard doubled.isEmpty else {
            reader.collector.error(
                "an app has one key or a key for each environment, not both",
                "remove \(doubled.joined(separator: " and ")), or keys", at: location)
            return nil
        }
        guard has("team_id") else {
            reader.collector.error("team_id missing", "add the team_id of these keys", at: location)
            return nil
        }
        guard let team, let keys else { return nil }
        return .keys(teamID: team, keys)
    }

    private func key() -> Configuration.Credential? {
        let names = ["team_id"] + Self.singleNames
        let missing = names.filter { !has($0) }
        let team = reader[ConfigurationKeys.App.teamID]
        let key = reader[ConfigurationKeys.App.keyID]
        let path = reader[ConfigurationKeys.App.keyPath]
        guard missing.isEmpty else {
            let what =
                missing.count == names.count
                ? "an app needs a key or a certificate" : "\(missing.joined(separator: " and ")) missing"
            reader.collector.error(what, Self.advice, at: reader.location)
            return nil
        }
        guard let team, let key, let path else { return nil }
        return .key(teamID: team, keyID: key, path: path)
    }
}

extension ValueDecoder where Value == AddressRange {
    static var addressRange: ValueDecoder {
        parsed(
            "an IP address or a range", example: "10.0.0.0/8", form: .pattern("^[0-9A-Fa-f.:]+(/[0-9]+)?$")
        ) { AddressRange($0) }
    }
}

extension ValueDecoder where Value == Configuration.Feeds {
    static var feeds: ValueDecoder {
        .object(ConfigurationKeys.Feeds.shape) { reader in
            Configuration.Feeds(
                allow: reader[ConfigurationKeys.Feeds.allow] ?? [],
                proxy: reader[ConfigurationKeys.Feeds.proxy] ?? false)
        }
    }
}

extension ValueDecoder where Value == Configuration.Endpoints {
    static var endpoints: ValueDecoder {
        .object(ConfigurationKeys.Endpoints.shape) { reader in
            Configuration.Endpoints(
                production: reader[ConfigurationKeys.Endpoints.production],
                sandbox: reader[ConfigurationKeys.Endpoints.sandbox], trust: reader[ConfigurationKeys.Endpoints.trust])
        }
    }
}

extension ValueDecoder where Value == Configuration.HTTP {
    static var http: ValueDecoder {
        .object(ConfigurationKeys.HTTP.shape) { reader in
            var http = Configuration.HTTP()
            http.listen = reader[ConfigurationKeys.HTTP.listen] ?? http.listen
            http.editing = reader[ConfigurationKeys.HTTP.editing] ?? http.editing
            http.proxy = reader[ConfigurationKeys.HTTP.proxy]
            http.openMetrics = reader[ConfigurationKeys.HTTP.openMetrics] ?? http.openMetrics
            return http
        }
    }
}

extension ValueDecoder where Value == Configuration.Proxy {
    static var proxy: ValueDecoder {
        .object(ConfigurationKeys.Proxy.shape) { reader in
            guard let addresses = reader[ConfigurationKeys.Proxy.addresses] else { return nil }
            var proxy = Configuration.Proxy(addresses: addresses)
            proxy.userHeader = reader[ConfigurationKeys.Proxy.userHeader] ?? proxy.userHeader
            proxy.role = reader[ConfigurationKeys.Proxy.role] ?? proxy.role
            proxy.roleHeader = reader[ConfigurationKeys.Proxy.roleHeader]
            proxy.removesHeaders = reader[ConfigurationKeys.Proxy.removesHeaders] ?? proxy.removesHeaders
            return proxy
        }
    }
}

extension ValueDecoder where Value == Configuration.Webhook {
    static var webhook: ValueDecoder {
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

extension ValueDecoder where Value == Configuration.Retention {
    static var retention: ValueDecoder {
        .object(ConfigurationKeys.Retention.shape) { reader in
            let outcomes = reader[ConfigurationKeys.Retention.outcomes]
            let events = reader[ConfigurationKeys.Retention.events]
            return Configuration.Retention(
                outcomes: outcomes ?? Configuration.Retention.usual, events: events ?? Configuration.Retention.usual)
        }
    }
}
