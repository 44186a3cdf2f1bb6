import Model

/// Decoders for the keys of a campaign.
extension ValueDecoder where Value == String {
    /// A bundle id. Fanfare adds the suffix of a push type (`ProviderProtocol` section 4).
    static var topic: ValueDecoder {
        let form = TextForm.patternOrNumber(#"^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$"#)
        return parsed("a bundle id", example: "com.example.wendercast", form: form) {
            Topic.isWellFormed($0) ? $0 : nil
        }
        .checked { text, field in
            guard let suffix = Topic.suffix(of: text) else { return }
            field.error(
                "topic \(quoted(text)) ends in \(quoted(suffix))",
                "write the bundle id alone (\(text.dropLast(suffix.count))); Fanfare adds the suffix for push_type")
        }
    }
}

extension ValueDecoder where Value == PushPriority {
    static var priority: ValueDecoder {
        let shape = ValueShape.choice(PushPriority.allCases.map { String($0.rawValue) })
        return ValueDecoder(shape: shape) { field in
            let number = field.node.isPlain ? field.node.text.flatMap { Int($0) } : nil
            guard let priority = number.flatMap(PushPriority.init(rawValue:)) else {
                field.refuse(shape)
                return nil
            }
            return priority
        }
    }
}

extension ValueDecoder where Value == [String: String] {
    private static var variableName: ValueShape {
        .text(summary: "a name", form: .pattern(ScalarPattern.variable))
    }

    static var variables: ValueDecoder {
        let shape = ValueShape.map(key: variableName, .text(summary: "a text", form: .freeOrNothing))
        return ValueDecoder(shape: shape) { field in
            guard let members = field.members(shape) else { return nil }
            var variables: [String: String] = [:]
            for member in members {
                guard TemplateText.isName(member.key[...]), TextForm.matches(member.key, ScalarPattern.variable) else {
                    field.collector.error(
                        "variable \(quoted(member.key)) is not a name", "use a letter, then letters, digits, _ and -",
                        at: member.location)
                    continue
                }
                // A key without a value is equivalent to an empty text. Such a variable must be set at the start of a
                // run.
                let value = Field(name: member.key, node: member.value, collector: field.collector)
                variables[member.key] = member.value.isNothing ? "" : value.text(.text(summary: "a text")) ?? ""
            }
            return variables
        }
    }
}

extension ValueDecoder where Value == Campaign.Collapse {
    /// A collapse id. `apns-collapse-id` contains at most 64 bytes (`ProviderProtocol` section 4).
    static var collapse: ValueDecoder {
        parsed("run, none or a fixed key", example: "run") { text in
            switch text {
            case "run": .run
            case "none": Campaign.Collapse.none
            default: text.isEmpty ? nil : .key(text)
            }
        }.checked { collapse, field in
            guard case .key(let key) = collapse else { return }
            if key.utf8.count > 64 {
                field.error("collapse has \(key.utf8.count) bytes", "APNs accepts at most 64")
            } else if key.contains("{{") {
                field.error("collapse is a fixed key and holds no placeholders", "use run to have one per run")
            } else if !key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
                field.error(
                    "collapse holds characters that a header cannot carry", "use letters, digits and punctuation")
            }
        }
    }
}

extension ValueDecoder where Value == Campaign.Pace {
    static var pace: ValueDecoder {
        .object(CampaignKeys.Pace.shape) { pace in
            let ramp = pace[CampaignKeys.Pace.ramp]
            return pace[CampaignKeys.Pace.rate].map { Campaign.Pace(pushesPerSecond: $0, ramp: ramp) }
        }
    }
}

extension ValueDecoder where Value == Campaign.Guards {
    static var guards: ValueDecoder {
        .object(CampaignKeys.Guards.shape) { reader in
            let guards = Campaign.Guards(
                maxReach: reader[CampaignKeys.Guards.maxReach], minReach: reader[CampaignKeys.Guards.minReach],
                maxGrowthPercent: reader[CampaignKeys.Guards.maxGrowth])
            if let least = guards.minReach, let most = guards.maxReach, least > most {
                reader.collector.error(
                    "min_reach \(least) is more than max_reach \(most)", "swap them",
                    at: reader.keyLocation("min_reach") ?? reader.location)
            }
            return guards
        }
    }
}

extension ValueDecoder where Value == Int {
    static var retry: ValueDecoder {
        .object(CampaignKeys.Retry.shape) { $0[CampaignKeys.Retry.maxAttempts] }
    }
}

extension ValueDecoder where Value == [Campaign.Variant] {
    static var variants: ValueDecoder {
        let variant = ValueDecoder<(Int, String)>.object(CampaignKeys.Variant.shape) { reader in
            let weight = reader[CampaignKeys.Variant.weight]
            let template = reader[CampaignKeys.Variant.template]
            guard let weight, let template else { return nil }
            return (weight, template)
        }
        let shape = ValueShape.map(key: ValueDecoder<String>.name.shape, variant.shape)
        return ValueDecoder(shape: shape) { field in
            guard let members = field.members(shape) else { return nil }
            if members.count == 1 {
                field.collector.warning(
                    "variants holds only one variant", "add the one to compare it with, or remove the key",
                    at: field.location)
            }
            return members.compactMap { member in
                // The name appears in reports and hashes, so it follows the rule for other names.
                let name = FileNode(content: .scalar(member.key), location: member.location, isPlain: false)
                let nameField = Field(name: "variants", node: name, collector: field.collector)
                let value = Field(name: member.key, node: member.value, collector: field.collector)
                guard let name = ValueDecoder<String>.name.read(nameField), let (weight, template) = variant.read(value)
                else { return nil }
                return Campaign.Variant(name: name, weight: weight, template: template)
            }
        }
    }
}

/// The form of a topic in a file: an app's bundle id.
enum Topic {
    static func isWellFormed(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count > 1 && text.utf8.count <= 255
            && parts.allSatisfy { part in
                !part.isEmpty && part.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "-") }
            }
    }

    /// Returns the suffix of a push type at the end of a text. Fanfare adds this suffix itself (`ProviderProtocol`
    /// section 4).
    static func suffix(of text: String) -> String? {
        PushType.allCases.map(\.topicSuffix).first { !$0.isEmpty && text.hasSuffix($0) }
    }
}
