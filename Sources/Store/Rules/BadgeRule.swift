package import Model
import Synchronization

/// The changes that a run makes to the badge counts of devices. A push counts if APNs accepted it, or if it may have
/// reached the device. A refused push leaves the count as it is.
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

    /// The change that every push of the run makes, whatever its variant. `nil` if no push changes the count, or if the
    /// change depends on the variant, see ``badge(ofVariant:)``.
    package var common: Template.Badge? {
        Set(byVariant).count == 1 ? byVariant[0] : nil
    }

    /// - Parameter variant: the delivery's variant; `nil` if it has none.
    package func badge(ofVariant variant: Int?) -> Template.Badge? {
        let index = variant ?? 0
        return byVariant.indices.contains(index) ? byVariant[index] : nil
    }

    package static func counts(_ settlement: Settlement) -> Bool {
        settlement.verdict == .accepted || settlement.verdict == .unknown
    }

    private static let keptMax = 1000
    private static let known = Mutex<[Int64: BadgeRule]>([:])

    /// Returns the rule of a definition, from a cache of this process.
    ///
    /// - Parameter hash: the hash of the definition's text, see ``RunDefinitionText``.
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
