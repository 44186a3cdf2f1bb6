import Model

/// The names Apple gives the keys of `aps` (`apns-protocol.md` section 5).
enum APSKey {
    /// Names that an app would hardly choose for keys of its own.
    static let onlyInside: Set<String> = [
        "alert", "badge", "sound", "thread-id", "content-available", "mutable-content", "target-content-id",
        "interruption-level", "relevance-score", "filter-criteria", "content-changed", "content-state", "stale-date",
        "dismissal-date", "attributes-type",
    ]
    static let all = onlyInside.union([
        "category", "event", "timestamp", "attributes", "input-push-channel", "input-push-token", "url-args",
    ])
    static let ofAlert: Set<String> = [
        "title", "subtitle", "body", "launch-image", "title-loc-key", "title-loc-args", "subtitle-loc-key",
        "subtitle-loc-args", "loc-key", "loc-args", "sound", "summary-arg", "summary-arg-count", "action",
        "action-loc-key",
    ]

    /// The template's name for the same thing.
    static func inTemplate(_ name: String) -> String { name.replacing("-", with: "_") }
}

/// Authors who know Apple's JSON write `aps:`; a message about it says more than that the key is unknown.
enum APSReading {
    /// The file without `aps`, after reporting it and every key inside that is the app's own.
    static func without(_ root: Field) -> Field {
        guard case .object(let members) = root.node.content, let aps = members.first(where: { $0.key == "aps" }) else {
            return root
        }
        root.findings.error(
            "a template holds no \"aps\"; Fanfare builds it from the keys of the template",
            "move its content up: alert by language, sound, badge, category, thread_id; your own keys go under custom",
            at: aps.place)
        refuseOwnKeys(in: aps.value, named: "aps", known: APSKey.all, root.findings)
        if case .object(let inside) = aps.value.content, let alert = inside.first(where: { $0.key == "alert" }) {
            refuseOwnKeys(in: alert.value, named: "aps.alert", known: APSKey.ofAlert, root.findings)
        }
        var root = root
        root.node.content = .object(members.filter { $0.key != "aps" })
        return root
    }

    private static func refuseOwnKeys(
        in node: FileNode, named name: String, known: Set<String>, _ findings: Findings
    ) {
        guard case .object(let members) = node.content else { return }
        // Underscores are the template's spelling of Apple's names.
        for member in members where !known.contains(member.key.replacing("_", with: "-")) {
            findings.error(
                "\(quoted(member.key)) inside \(name)",
                "move it under custom: Apple ignores keys in aps that it does not know", at: member.place)
        }
    }
}
