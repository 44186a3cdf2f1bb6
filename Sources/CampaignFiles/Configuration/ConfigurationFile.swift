package import Model

/// Reads `fanfare.yaml` and the environment variables that override it. All problems are reported together. There is a
/// value only if none is an error.
package enum ConfigurationFile {
    /// Environment variables that correspond to no key of the file.
    private static let otherVariables: Set<String> = ["FANFARE_CONFIG", "FANFARE_CERTIFICATE_PASSWORD"]

    /// Reads a configuration. Relative paths in the file are relative to its folder. Those in environment variables are
    /// relative to the current folder.
    package static func read(
        text: String, path: String, environment: [String: String] = [:]
    ) -> (Configuration?, [Diagnostic]) {
        let text = FileText.withoutMark(text)
        let collector = DiagnosticCollector(path: path, text: text)
        var overlay = EnvironmentOverlay(environment)
        let written = YAMLDocument.read(text, into: collector).flatMap { $0.isNothing ? nil : $0 }
        if collector.hasErrors, written == nil { return (nil, collector.diagnostics) }
        guard let root = overlay.apply(ConfigurationKeys.shape, to: written) else {
            collector.error("the file is empty", "write store: and apps:", at: SourceLocation(line: 1, column: 1))
            return (nil, collector.diagnostics)
        }
        warnOfUnused(overlay, collector)
        let field = Field(name: "", node: root, collector: collector)
        let configuration = ObjectReader(field, ConfigurationKeys.shape).flatMap(build)
        return (collector.hasErrors ? nil : configuration, collector.diagnostics)
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
        let folder = reader.collector.folder
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
        refuseDoubleWebhooks(configuration.webhooks, reader)
        configuration.retention = reader[ConfigurationKeys.retention] ?? configuration.retention
        configuration.approvals = reader[ConfigurationKeys.approvals]
        configuration.volumeBrake = reader[ConfigurationKeys.volumeBrake]
        configuration.success = reader[ConfigurationKeys.success] ?? configuration.success
        let testDevices = reader[ConfigurationKeys.testDevices]
        configuration.testDevices = testDevices?.segment
        configuration.namedTestDevices = testDevices?.named ?? [:]
        configuration.feeds = reader[ConfigurationKeys.feeds] ?? configuration.feeds
        configuration.log = reader[ConfigurationKeys.log] ?? configuration.log
        let people = reader[ConfigurationKeys.people]
        if let people { configuration.approvals?.people = people }
        warnOfAccounts(configuration.approvals, reader)
        let files = ApprovalRules.Files(
            campaigns: configuration.campaigns, templates: configuration.templates,
            usualFeedback: configuration.usualFeedback)
        configuration.approvals?.files = files
        return store == nil || apps == nil ? nil : configuration
    }

    /// Warns if a rule distinguishes people and `people` is missing. One person with two accounts then counts as two
    /// people.
    private static func warnOfAccounts(_ approvals: ApprovalRules?, _ reader: ObjectReader) {
        guard let approvals, approvals.people.identities.isEmpty else { return }
        guard let rule = approvals.rules.first(where: { $0.needs > 1 || $0.notByAuthor }) else { return }
        let asks = rule.needs > 1 ? "needs: \(rule.needs)" : "not_by_author: true"
        reader.field("approvals")?.advise(
            "\(asks): a person with two accounts counts as two people, and could sign their own plan",
            "list each person's accounts under people: {anna: [\"token:anna\", \"os:anna\"]}")
    }

    private static func refuseDoubleTopics(_ apps: [Configuration.App], _ reader: ObjectReader) {
        if apps.isEmpty, let field = reader.field("apps"), !reader.collector.hasErrors {
            field.warning(
                "apps is empty: nothing can be sent", "add an app on the Setup page, or here with a topic and a key")
        }
        for (index, app) in apps.enumerated() where apps[..<index].contains(where: { $0.topic == app.topic }) {
            reader.field("apps")?.error("two apps have the topic \(quoted(app.topic))", "keep one of them")
        }
    }

    /// A message is for one address, and is signed with one secret.
    private static func refuseDoubleWebhooks(_ webhooks: [Configuration.Webhook], _ reader: ObjectReader) {
        for (index, hook) in webhooks.enumerated() where webhooks[..<index].contains(where: { $0.url == hook.url }) {
            reader.field("webhooks")?.error(
                "two webhooks have the url \(quoted(hook.url))", "write one webhook with the events of both")
        }
    }

    private static func warnOfUnused(_ overlay: EnvironmentOverlay, _ collector: DiagnosticCollector) {
        let unused = overlay.environment.keys.filter { !overlay.used.contains($0) && !otherVariables.contains($0) }
        let known = [
            "FANFARE_CAMPAIGNS", "FANFARE_CONFIG", "FANFARE_HTTP_LISTEN", "FANFARE_LOG_FORMAT", "FANFARE_LOG_LEVEL",
            "FANFARE_RETENTION_OUTCOMES", "FANFARE_STORE", "FANFARE_TEMPLATES", "FANFARE_TRANSPORT",
            "FANFARE_APPS_0_KEY_PATH and the other keys of an app",
        ]
        for name in unused.sorted() {
            let known = overlay.beside(name) ?? known
            let nearest = Suggestion.nearest(
                to: String(name.dropFirst(8)), among: known.map { String($0.dropFirst(8)) })
            collector.warning(
                "this environment variable does not name a configuration key",
                nearest.map { "did you mean FANFARE_\($0)?" } ?? "known are \(known.joined(separator: ", "))",
                at: SourceLocation(source: name))
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

/// Overrides values of the file with environment variables: `FANFARE_HTTP_LISTEN` for `http.listen`,
/// `FANFARE_APPS_0_KEY_PATH` for `key_path` of the first app. An empty variable counts as not set.
struct EnvironmentOverlay {
    static let prefix = "FANFARE"

    let environment: [String: String]
    private(set) var used: Set<String> = []
    /// The names that can be set for an element of a list, by the element's prefix.
    private var offered: [String: [String]] = [:]

    init(_ environment: [String: String]) {
        self.environment = environment.filter { $0.key.hasPrefix("\(Self.prefix)_") && !$0.value.isEmpty }
    }

    mutating func apply(_ shape: ObjectShape, to node: FileNode?, prefix: String = prefix) -> FileNode? {
        guard hasVariable(under: prefix) else { return node }
        var members: [FileNode.Member] = []
        if let node {
            guard case .object(let own) = node.content else { return node }
            members = own
        }
        for key in shape.keys {
            let name = "\(prefix)_\(key.name.uppercased())"
            let index = members.firstIndex { $0.key == key.name }
            let value = overlay(key.value, over: index.map { members[$0].value }, name: name)
            guard let value else { continue }
            if let index {
                members[index].value = value
            } else {
                members.append(FileNode.Member(key: key.name, location: value.location, value: value))
            }
        }
        let location = node?.location ?? members.first?.location ?? SourceLocation(source: prefix)
        return FileNode(content: .object(members), location: location, isPlain: false)
    }

    private mutating func overlay(_ shape: ValueShape, over node: FileNode?, name: String) -> FileNode? {
        switch shape {
        case .object(let object): return apply(object, to: node, prefix: name)
        case .list(.object(let element)): return list(of: element, over: node, name: name)
        case .text, .integer, .number, .boolean, .choice:
            guard let text = environment[name] else { return node }
            used.insert(name)
            return FileNode(content: .scalar(text), location: SourceLocation(source: name), isPlain: true)
        case .list, .map, .either, .anything: return node
        }
    }

    private mutating func list(of element: ObjectShape, over node: FileNode?, name: String) -> FileNode? {
        var elements: [FileNode] = []
        if let node {
            guard case .list(let own) = node.content else { return node }
            elements = own
        }
        for index in elements.indices {
            offer(element, prefix: "\(name)_\(index)")
            elements[index] = apply(element, to: elements[index], prefix: "\(name)_\(index)") ?? elements[index]
        }
        offer(element, prefix: "\(name)_\(elements.count)")
        while let added = apply(element, to: nil, prefix: "\(name)_\(elements.count)") {
            elements.append(added)
            offer(element, prefix: "\(name)_\(elements.count)")
        }
        guard node != nil || !elements.isEmpty else { return nil }
        return FileNode(
            content: .list(elements), location: node?.location ?? SourceLocation(source: name), isPlain: false)
    }

    /// Returns the names that can be set for the same element of a list. `nil` if the name belongs to no element.
    func beside(_ name: String) -> [String]? {
        offered.filter { name.hasPrefix("\($0.key)_") }.max { $0.key.count < $1.key.count }?.value
    }

    private mutating func offer(_ element: ObjectShape, prefix: String) {
        guard hasVariable(under: prefix) else { return }
        offered[prefix] = element.keys.map { key in
            let name = "\(prefix)_\(key.name.uppercased())"
            if case .object = key.value { return "\(name)_..." }
            return name
        }
    }

    private func hasVariable(under prefix: String) -> Bool {
        environment.keys.contains { $0.hasPrefix("\(prefix)_") }
    }
}
