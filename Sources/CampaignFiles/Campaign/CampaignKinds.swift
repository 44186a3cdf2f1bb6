import Model

/// How the keys that are particular to a campaign are read.
extension ValueKind where Value == String {
    /// A bundle id. The suffix of a push type is Fanfare's to add (`apns-protocol.md` section 4).
    static var topic: ValueKind {
        let form = TextForm.pattern(#"^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$"#)
        return parsed("a bundle id", example: "com.example.wendercast", form: form) {
            Topic.isWellFormed($0) ? $0 : nil
        }
        .checked { text, field in
            guard let suffix = Topic.suffix(of: text) else { return }
            field.error(
                "topic \(quoted(text)) ends in \(quoted(suffix))",
                "write the bundle id alone (\(text.dropLast(suffix.count))); Fanfare adds what push_type asks for")
        }
    }
}

extension ValueKind where Value == PushPriority {
    static var priority: ValueKind {
        let shape = ValueShape.choice(PushPriority.allCases.map { String($0.rawValue) })
        return ValueKind(shape: shape) { field in
            let number = field.node.isPlain ? field.node.text.flatMap { Int($0) } : nil
            guard let priority = number.flatMap(PushPriority.init(rawValue:)) else {
                field.refuse(shape)
                return nil
            }
            return priority
        }
    }
}

extension ValueKind where Value == [String: String] {
    private static var variableName: ValueShape {
        .text(words: "a name", form: .pattern(#"^[^\s.{}]+$"#))
    }

    static var variables: ValueKind {
        let shape = ValueShape.map(key: variableName, .text(words: "a text", form: .freeOrNothing))
        return ValueKind(shape: shape) { field in
            guard let members = field.members(shape) else { return nil }
            var variables: [String: String] = [:]
            for member in members {
                guard TemplateText.isName(member.key[...]) else {
                    field.findings.error(
                        "variable \(quoted(member.key)) is no name", "use a letter, then letters, digits, _ and -",
                        at: member.place)
                    continue
                }
                // A key with nothing behind it is the same as an empty text: it must be given at the start of a run.
                let value = Field(name: member.key, node: member.value, findings: field.findings)
                variables[member.key] = member.value.isNothing ? "" : value.text(.text(words: "a text"))
            }
            return variables
        }
    }
}

extension ValueKind where Value == Campaign.Collapse {
    /// `apns-collapse-id` holds at most 64 bytes (`apns-protocol.md` section 4).
    static var collapse: ValueKind {
        parsed("run, none or a fixed key", example: "run") { text in
            switch text {
            case "run": .run
            case "none": Campaign.Collapse.none
            default: text.isEmpty ? nil : .key(text)
            }
        }.checked { collapse, field in
            guard case .key(let key) = collapse else { return }
            if key.utf8.count > 64 {
                field.error("collapse has \(key.utf8.count) bytes", "APNs takes at most 64")
            } else if key.contains("{{") {
                field.error("collapse is a fixed key and holds no placeholders", "use run to have one per run")
            } else if !key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
                field.error(
                    "collapse holds characters that a header cannot carry", "use letters, digits and punctuation")
            }
        }
    }
}

extension ValueKind where Value == Campaign.Pace {
    static var pace: ValueKind {
        .object(CampaignKeys.Pace.shape) { pace in
            let ramp = pace[CampaignKeys.Pace.ramp]
            return pace[CampaignKeys.Pace.rate].map { Campaign.Pace(pushesPerSecond: $0, ramp: ramp) }
        }
    }
}

extension ValueKind where Value == Campaign.Guards {
    static var guards: ValueKind {
        .object(CampaignKeys.Guards.shape) { reader in
            let guards = Campaign.Guards(
                maxReach: reader[CampaignKeys.Guards.maxReach], minReach: reader[CampaignKeys.Guards.minReach],
                maxGrowthPercent: reader[CampaignKeys.Guards.maxGrowth])
            if let least = guards.minReach, let most = guards.maxReach, least > most {
                reader.findings.error(
                    "min_reach \(least) is more than max_reach \(most)", "exchange the two",
                    at: reader.keyPlace("min_reach") ?? reader.place)
            }
            return guards
        }
    }
}

extension ValueKind where Value == Int {
    static var retry: ValueKind {
        .object(CampaignKeys.Retry.shape) { $0[CampaignKeys.Retry.maxAttempts] }
    }
}

extension ValueKind where Value == [Campaign.Variant] {
    static var variants: ValueKind {
        let variant = ValueKind<(Int, String)>.object(CampaignKeys.Variant.shape) { reader in
            let weight = reader[CampaignKeys.Variant.weight]
            let template = reader[CampaignKeys.Variant.template]
            guard let weight, let template else { return nil }
            return (weight, template)
        }
        let shape = ValueShape.map(key: ValueKind<String>.name.shape, variant.shape)
        return ValueKind(shape: shape) { field in
            guard let members = field.members(shape) else { return nil }
            if members.count == 1 {
                field.findings.warning(
                    "variants holds one variant", "add the one to compare it with, or remove the key", at: field.place)
            }
            return members.compactMap { member in
                // The name goes into reports and hashes: the same rule as for other names.
                let name = FileNode(content: .scalar(member.key), place: member.place, isPlain: false)
                let nameField = Field(name: "variants", node: name, findings: field.findings)
                let value = Field(name: member.key, node: member.value, findings: field.findings)
                guard let name = ValueKind<String>.name.read(nameField), let (weight, template) = variant.read(value)
                else { return nil }
                return Campaign.Variant(name: name, weight: weight, template: template)
            }
        }
    }
}
