import Foundation
import Model

extension ConfigurationKeys {
    enum Approvals {
        static let rules = Key(
            "rules", .list(of: .approvalRule), required: true,
            "One rule for each reach; if several apply, the strictest value of each key counts.")
        static let ceiling = Key(
            "ceiling", .integer(1...Int.max), "The maximum reach of any run, even with signatures.")
        static let breakGlass = Key(
            "break_glass", .boolean, "Allow `run --break-glass` to start a run without signatures.")
        static let breakGlassBy = Key(
            "break_glass_by", .list(of: .text), "The people who may use --break-glass (default: everyone).")
        static let shape = ObjectShape(
            "approvals", "The signatures that a plan needs.",
            [rules.shape, ceiling.shape, breakGlass.shape, breakGlassBy.shape])

        static let above = Key(
            "above", .integer(0...Int.max), required: true, "The reach above which a run needs these signatures.")
        static let needs = Key("needs", .integer(1...20), "The number of different people who must sign (default: 1).")
        static let notByAuthor = Key(
            "not_by_author", .boolean, "true: the plan's author may not sign it (default: true).")
        static let within = Key(
            "within", .duration(.seconds(60) ... .seconds(366 * 86_400), example: "24h"),
            "How long a signature is valid (default: 24h).")
        static let drift = Key(
            "drift", .percent(0...1000), "The tolerated difference from the signed reach (default: 5%).")
        static let ruleShape = ObjectShape(
            "rules", "The signatures needed above a reach.",
            [above.shape, needs.shape, notByAuthor.shape, within.shape, drift.shape])
    }
}

extension ValueDecoder where Value == ApprovalRules {
    static var approvals: ValueDecoder {
        .object(ConfigurationKeys.Approvals.shape) { reader in
            guard let rules = reader[ConfigurationKeys.Approvals.rules] else { return nil }
            let approvals = ApprovalRules(
                rules: rules, ceiling: reader[ConfigurationKeys.Approvals.ceiling],
                breakGlass: reader[ConfigurationKeys.Approvals.breakGlass] ?? false,
                breakGlassBy: reader[ConfigurationKeys.Approvals.breakGlassBy] ?? [])
            if !approvals.breakGlass, !approvals.breakGlassBy.isEmpty {
                reader.field("break_glass_by")?.error(
                    "break_glass_by without break_glass", "write break_glass: true, or remove break_glass_by")
            }
            return approvals
        }
    }
}

extension ValueDecoder where Value == ApprovalRules.Rule {
    static var approvalRule: ValueDecoder {
        .object(ConfigurationKeys.Approvals.ruleShape) { reader in
            guard let above = reader[ConfigurationKeys.Approvals.above] else { return nil }
            var rule = ApprovalRules.Rule(above: above, needs: reader[ConfigurationKeys.Approvals.needs] ?? 1)
            rule.notByAuthor = reader[ConfigurationKeys.Approvals.notByAuthor] ?? rule.notByAuthor
            rule.within = reader[ConfigurationKeys.Approvals.within] ?? rule.within
            rule.driftPercent = reader[ConfigurationKeys.Approvals.drift] ?? rule.driftPercent
            return rule
        }
    }
}

extension ValueDecoder where Value == ConfiguredPeople {
    /// `anna: [os:anna, "token:#17", git:anna@example.org]`.
    static var people: ValueDecoder {
        let accounts = ValueDecoder<[String]>.list(of: account)
        let shape = ValueShape.map(key: .text(summary: "a person's name"), accounts.shape)
        return ValueDecoder(shape: shape) { field in
            guard let members = field.members(shape) else { return nil }
            // Accounts are compared by bytes.
            var owners: [Data: String] = [:]
            var people = ConfiguredPeople()
            for member in members {
                let own = Field(name: member.key, node: member.value, collector: field.collector)
                if !AccountName.isPlain(member.key) {
                    field.collector.error(
                        "the name \(quoted(member.key)) has invisible characters or combining accents",
                        "write it in Unicode's composed form (NFC)", at: member.location)
                }
                let identities = accounts.read(own) ?? []
                for identity in identities {
                    let account = Data(AccountName.canonical(identity).utf8)
                    if let other = owners.updateValue(member.key, forKey: account), other != member.key {
                        field.collector.error(
                            "\(quoted(identity)) is an account of \(other) and of \(member.key)",
                            "give each account to one person", at: member.location)
                    }
                }
                people.identities[member.key] = identities
            }
            return people
        }
    }

    private static var account: ValueDecoder<String> {
        .parsed(
            "an account such as os:anna, token:anna-mac, token:#17 (by its id), proxy:anna, git:anna@example.org or ed25519: "
                + "and a public key, in Unicode's composed form (NFC)",
            example: "os:anna", form: .pattern("^(os|token|proxy|git|ed25519):.+$")
        ) { text in
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[1].isEmpty, AccountName.isPlain(text) else { return nil }
            // A raw public key has 32 bytes.
            if text.hasPrefix(People.keyPrefix) {
                return Data(base64Encoded: String(parts[1]))?.count == 32 ? text : nil
            }
            // No token's name begins with `#`, the mark of an id.
            if parts[0] == "token", parts[1].hasPrefix("#") { return ConfiguredPeople.tokenID(text).map { _ in text } }
            return ["os", "token", "proxy", "git"].contains(parts[0]) ? text : nil
        }
    }
}
