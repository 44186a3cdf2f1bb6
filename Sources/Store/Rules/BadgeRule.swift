package import Model
import Synchronization

/// What a run makes of the badge counts that are kept for devices. A push counts once it was accepted, or may have
/// reached the device for all that is known. A refused push leaves the count as it is.
package struct BadgeRule: Hashable, Sendable {
    /// By index of the variant; one entry for a run without variants.
    private let byVariant: [Template.Badge?]

    package init(_ definition: RunDefinition) {
        let variants: [Int?] =
            definition.campaign.variants.isEmpty ? [nil] : definition.campaign.variants.indices.map(\.self)
        byVariant = variants.map { variant in
            definition.campaign.pushType == .alert ? definition.template(ofVariant: variant).badge : nil
        }
    }

    /// Whether no push of the run changes a count.
    package var isIdle: Bool { byVariant.allSatisfy { $0 == nil } }

    /// What every push of the run does, whatever its variant; `nil`: it depends on the variant, see
    /// ``badge(ofVariant:)``.
    package var common: Template.Badge? {
        Set(byVariant).count == 1 ? byVariant[0] : nil
    }

    /// - Parameter variant: of the delivery; `nil` when it has none.
    package func badge(ofVariant variant: Int?) -> Template.Badge? {
        let index = variant ?? 0
        return byVariant.indices.contains(index) ? byVariant[index] : nil
    }

    package static func counts(_ settlement: Settlement) -> Bool {
        settlement.verdict == .accepted || settlement.verdict == .unknown
    }

    private static let keptMax = 1000
    private static let known = Mutex<[Int64: BadgeRule]>([:])

    /// The rule of a definition, worked out once in this process.
    ///
    /// - Parameter hash: of the definition's text, see ``RunDefinitionText``.
    package static func rule(hash: Int64, definition: () throws -> RunDefinition) rethrows -> BadgeRule {
        if let rule = known.withLock({ $0[hash] }) { return rule }
        let rule = BadgeRule(try definition())
        known.withLock { known in
            if known.count >= keptMax { known.removeAll() }
            known[hash] = rule
        }
        return rule
    }
}
