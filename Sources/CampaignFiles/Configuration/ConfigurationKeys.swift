import Model

/// The keys of `fanfare.yaml`.
package enum ConfigurationKeys {
    static let store = Key("store", .path, required: true, "The SQLite file.")
    static let campaigns = Key("campaigns", .path, "The folder with campaign files; campaigns when absent.")
    static let templates = Key("templates", .path, "The folder with template files; templates when absent.")
    static let apps = Key("apps", .list(of: .app), required: true, "How to reach APNs for each app.")
    static let transport = Key(
        "transport", ValueKind<Configuration.Transport>.word,
        "What carries the requests: native, or curl (libcurl) where a proxy is in the way.")
    static let pace = Key("pace", .pace, "How fast all apps together.")
    static let http = Key("http", .http, "The daemon's HTTP server.")
    static let webhooks = Key("webhooks", .list(of: .webhook), "Who is told what becomes of runs.")
    static let retention = Key("retention", .retention, "How long things are kept.")

    /// The whole configuration file, as data.
    package static let shape = ObjectShape(
        "configuration", "Where things are, and how to reach APNs for each app.",
        [
            store.shape, campaigns.shape, templates.shape, apps.shape, transport.shape, pace.shape, http.shape,
            webhooks.shape,
            retention.shape,
        ])

    enum App {
        static let topic = Key("topic", .topic, required: true, "The app's bundle id.")
        static let teamID = Key("team_id", .appleID, "The 10 characters of the team, with key_id and key_path.")
        static let keyID = Key("key_id", .appleID, "The 10 characters of the key.")
        static let keyPath = Key("key_path", .path, "The key file AuthKey_….p8.")
        static let certificatePath = Key(
            "certificate_path", .path, "A certificate in place of a key: PEM or .p12.")
        static let privateKeyPath = Key("private_key_path", .path, "The certificate's private key (PEM).")
        static let connections = Key("connections", .integer(1...64), "Lanes per environment.")
        static let silentBudget = Key("silent_budget", .silentBudget, "The ceiling of background pushes per device.")
        static let pace = Key("pace", .pace, "How fast all runs of the app together.")
        static let endpoints = Key("endpoints", .endpoints, "Other hosts than Apple's, for a simulator or relay.")
        static let shape = ObjectShape(
            "apps", "One app.",
            [
                topic.shape, teamID.shape, keyID.shape, keyPath.shape, certificatePath.shape, privateKeyPath.shape,
                connections.shape, silentBudget.shape, pace.shape, endpoints.shape,
            ])
    }

    enum SilentBudget {
        static let limit = Key("limit", .integer(1...1000), "Background pushes per device in a window.")
        static let window = Key(
            "window", .duration(.seconds(60) ... .seconds(7 * 86_400), example: "1h"), "The length of the window.")
        static let shape = ObjectShape(
            "silent_budget", "The ceiling of background pushes per device.", [limit.shape, window.shape])
    }

    enum Endpoints {
        static let production = Key("production", .hostAndPort, "host:port in place of Apple's production host.")
        static let sandbox = Key("sandbox", .hostAndPort, "host:port in place of Apple's sandbox host.")
        static let trust = Key("trust", .path, "The CA file (PEM) to trust for them.")
        static let shape = ObjectShape(
            "endpoints", "Other hosts than Apple's.", [production.shape, sandbox.shape, trust.shape])
    }

    enum HTTP {
        static let listen = Key("listen", .hostAndPort, "host:port to listen on.")
        static let shape = ObjectShape("http", "The daemon's HTTP server.", [listen.shape])
    }

    enum Webhook {
        static let url = Key("url", .webAddress, required: true, "The address to post to.")
        static let secretPath = Key(
            "secret_path", .path, required: true, "A file with the secret that signs the messages.")
        static let events = Key(
            "events", .list(of: ValueKind<Configuration.Webhook.Event>.word), "Of what; of everything when absent.")
        static let shape = ObjectShape("webhooks", "One webhook.", [url.shape, secretPath.shape, events.shape])
    }

    enum Retention {
        static let outcomes = Key(
            "outcomes", .duration(.seconds(86_400) ... .seconds(36_500 * 86_400), example: "400d"),
            "How long per-token outcomes are kept.")
        static let shape = ObjectShape("retention", "How long things are kept.", [outcomes.shape])
    }
}
