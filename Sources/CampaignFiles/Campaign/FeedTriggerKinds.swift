import Foundation
import Model

/// How the keys under `trigger` are read.
extension ValueKind where Value == FeedTrigger {
    static var trigger: ValueKind {
        .object(CampaignKeys.Trigger.shape) { reader in
            let url = reader[CampaignKeys.Trigger.feed]
            let variables = reader[CampaignKeys.Trigger.variables]
            var trigger = FeedTrigger(url: url ?? "")
            trigger.every = reader[CampaignKeys.Trigger.every] ?? trigger.every
            trigger.variables = variables ?? [:]
            trigger.lateByMax = reader[CampaignKeys.Trigger.lateByMax] ?? trigger.lateByMax
            trigger.newMax = reader[CampaignKeys.Trigger.newMax] ?? trigger.newMax
            return url == nil ? nil : trigger
        }
    }
}

extension ValueKind where Value == [String: FeedField] {
    static var feedVariables: ValueKind {
        let name = ValueShape.text(words: "a variable of the campaign", form: .pattern(#"^[^\s.{}]+$"#))
        let shape = ValueShape.map(key: name, ValueKind<FeedField>.word.shape)
        return ValueKind(shape: shape) { field in
            guard let members = field.members(shape) else { return nil }
            var variables: [String: FeedField] = [:]
            for member in members {
                let value = Field(name: member.key, node: member.value, findings: field.findings)
                variables[member.key] = ValueKind<FeedField>.word.read(value)
            }
            return variables
        }
    }
}

extension ValueKind where Value == String {
    /// An address of the web.
    static var webAddress: ValueKind {
        let form = TextForm.pattern(#"^https?://[^\s/]+\S*$"#)
        return parsed("an https address", example: "https://example.com/podcast.xml", form: form) { text in
            guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), let host = url.host,
                ["http", "https"].contains(scheme), !host.isEmpty, !text.contains(where: \.isWhitespace)
            else { return nil }
            return text
        }
        .checked { text, field in
            let url = URL(string: text)
            let isLocal = ["localhost", "127.0.0.1", "::1"].contains(url?.host ?? "")
            guard url?.scheme?.lowercased() == "http", !isLocal else { return }
            field.findings.warning(
                "\(quoted(field.name)) is not https: whoever is on the way can read and change what is sent",
                "write https:// if the server has it", at: field.place)
        }
    }
}

/// Checks of a campaign's feed together with the rest of the campaign.
enum FeedTriggerRules {
    static func check(_ campaign: Campaign, _ reader: ObjectReader) {
        guard let feed = campaign.feed, let trigger = reader.field("trigger") else { return }
        if campaign.schedule.map({ $0.trigger != .none }) == true, let place = reader.keyPlace("trigger") {
            reader.findings.error(
                "the campaign holds trigger, and schedule with cron or at", "keep one of the two", at: place)
        }
        checkVariables(campaign, feed, trigger)
    }

    private static func checkVariables(_ campaign: Campaign, _ feed: FeedTrigger, _ trigger: Field) {
        let given = trigger.members(of: "variables")
        for member in given where campaign.variables[member.key] == nil {
            let nearest = Suggestion.nearest(to: member.key, among: campaign.variables.keys)
            trigger.findings.error(
                "trigger.variables: the campaign has no variable \(quoted(member.key))",
                nearest.map { "did you mean \(quoted($0))?" } ?? "add it under variables", at: member.place)
        }
        let names = Set(given.map(\.key))
        let missing = campaign.variables.filter { $0.value.isEmpty && !names.contains($0.key) }.keys.sorted()
        guard !missing.isEmpty else { return }
        trigger.error(
            "trigger: nothing gives \(missing.map(quoted).joined(separator: ", ")) a value",
            "take it from the item under trigger.variables, for example \(missing[0]): item.title, or give it a default"
        )
    }
}

extension Field {
    fileprivate func members(of key: String) -> [FileNode.Member] {
        guard case .object(let members) = node.content,
            case .object(let inner)? = members.first(where: { $0.key == key })?.value.content
        else { return [] }
        return inner
    }
}
