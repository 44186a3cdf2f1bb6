/// How a stage decides which variant the rest of the audience gets.
///
/// It is stored as JSON inside ``RunDefinition``: its coding keys never change.
package struct VariantRule: Hashable, Sendable, Codable {
    /// The event by which the variants are compared.
    package enum Measure: String, Hashable, Sendable, Codable, CaseIterable {
        /// The direct opens of the push.
        case opens
        /// The campaign's conversion, by the devices that the push was accepted for.
        case conversion
    }

    /// What happens if the comparison shows no winner.
    package enum Undecided: String, Hashable, Sendable, Codable, CaseIterable {
        /// The run waits until a person chooses a variant.
        case wait
        /// The rest gets the first variant in the file.
        case first
    }

    package var by: Measure
    package var undecided: Undecided

    private enum CodingKeys: String, CodingKey {
        case by = "by", undecided = "undecided"
    }

    package init(by: Measure = .opens, undecided: Undecided = .wait) {
        self.by = by
        self.undecided = undecided
    }
}
