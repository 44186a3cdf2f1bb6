package import Model

/// Reads `fanfare.yaml` and the environment variables that override it. All problems are reported at once; there is a
/// value only when none is an error.
package enum ConfigurationFile {
    /// Variables that are no keys of the file.
    private static let otherVariables: Set<String> = ["FANFARE_CONFIG", "FANFARE_CERTIFICATE_PASSWORD"]

    /// Relative paths are taken from the file's folder, those in environment variables from the current one.
    package static func read(
        text: String, path: String, environment: [String: String] = [:]
    ) -> (Configuration?, [Diagnostic]) {
        let text = FileText.withoutMark(text)
        let findings = Findings(path: path, text: text)
        var overlay = EnvironmentOverlay(environment)
        let written = YAMLDocument.read(text, into: findings).flatMap { $0.isNothing ? nil : $0 }
        if findings.hasErrors, written == nil { return (nil, findings.diagnostics) }
        guard let root = overlay.apply(ConfigurationKeys.shape, to: written) else {
            findings.error("the file is empty", "write store: and apps:", at: Place(line: 1, column: 1))
            return (nil, findings.diagnostics)
        }
        warnOfUnused(overlay, findings)
        let field = Field(name: "", node: root, findings: findings)
        let configuration = ObjectReader(field, ConfigurationKeys.shape).flatMap(build)
        return (findings.hasErrors ? nil : configuration, findings.diagnostics)
    }

    /// Reads the file at `path`, at most 1 MiB of UTF-8.
    package static func load(
        path: String, environment: [String: String] = [:]
    ) -> (Configuration?, [Diagnostic]) {
        let (text, diagnostics) = FileText.load(path)
        guard let text else { return (nil, diagnostics) }
        return read(text: text, path: path, environment: environment)
    }

    private static func build(_ reader: ObjectReader) -> Configuration? {
        let folder = reader.findings.folder
        let store = reader[ConfigurationKeys.store]
        var apps = reader[ConfigurationKeys.apps]
        let transport = reader[ConfigurationKeys.transport]
        if let transport { apps = apps?.map { $0.using(transport) } }
        refuseDoubleTopics(apps ?? [], reader)
        var configuration = Configuration(
            store: store ?? "", campaigns: reader[ConfigurationKeys.campaigns] ?? folder + "campaigns",
            templates: reader[ConfigurationKeys.templates] ?? folder + "templates", apps: apps ?? [])
        configuration.pace = reader[ConfigurationKeys.pace]
        configuration.http = reader[ConfigurationKeys.http] ?? configuration.http
        configuration.webhooks = reader[ConfigurationKeys.webhooks] ?? configuration.webhooks
        configuration.outcomesKept = reader[ConfigurationKeys.retention] ?? configuration.outcomesKept
        return store == nil || apps == nil ? nil : configuration
    }

    private static func refuseDoubleTopics(_ apps: [Configuration.App], _ reader: ObjectReader) {
        if apps.isEmpty, let field = reader.field("apps"), !reader.findings.hasErrors {
            field.error("apps is empty", "add an app with topic and credential")
        }
        for (index, app) in apps.enumerated() where apps[..<index].contains(where: { $0.topic == app.topic }) {
            reader.field("apps")?.error("two apps have the topic \(quoted(app.topic))", "keep one of them")
        }
    }

    private static func warnOfUnused(_ overlay: EnvironmentOverlay, _ findings: Findings) {
        let unused = overlay.environment.keys.filter { !overlay.used.contains($0) && !otherVariables.contains($0) }
        let known = [
            "FANFARE_CAMPAIGNS", "FANFARE_CONFIG", "FANFARE_HTTP_LISTEN", "FANFARE_RETENTION_OUTCOMES",
            "FANFARE_STORE", "FANFARE_TEMPLATES", "FANFARE_TRANSPORT",
        ]
        for name in unused.sorted() {
            let nearest = Suggestion.nearest(
                to: String(name.dropFirst(8)), among: known.map { String($0.dropFirst(8)) })
            findings.warning(
                "this environment variable names no key of the configuration",
                nearest.map { "did you mean FANFARE_\($0)?" } ?? "known are \(known.joined(separator: ", "))",
                at: Place(source: name))
        }
    }
}

extension Configuration.App {
    fileprivate func using(_ transport: Configuration.Transport) -> Self {
        var app = self
        app.transport = transport
        return app
    }
}
