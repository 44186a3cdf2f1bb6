import Foundation
package import Testing

/// The tests and rows that `.ci/run` leaves to `.ci/nightly`, which sets `FANFARE_LONG_TESTS`.
package enum Nightly {
    package static let isOn = ProcessInfo.processInfo.environment["FANFARE_LONG_TESTS"] != nil

    /// Returns the rows of `.ci/run`, and at night also the others.
    package static func rows<Row>(_ always: [Row], atNight others: [Row]) -> [Row] { isOn ? always + others : always }
}

extension Trait where Self == ConditionTrait {
    /// Leaves a test or a suite to `.ci/nightly`.
    package static var nightly: Self { .enabled(if: Nightly.isOn, "`.ci/nightly` runs it") }
}
