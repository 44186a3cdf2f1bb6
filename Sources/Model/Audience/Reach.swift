/// Who an audience selects at this moment, counted.
package struct Reach: Hashable, Sendable {
    package struct Slice: Hashable, Sendable {
        package var environment: PushEnvironment
        /// As stored with the devices; nil: not known.
        package var locale: String?
        package var count: Int

        package init(environment: PushEnvironment, locale: String?, count: Int) {
            self.environment = environment
            self.locale = locale
            self.count = count
        }
    }

    /// Those who would be sent to.
    package var slices: [Slice]
    /// Those the expression selects who would not be, by reason.
    package var suppressed: [SuppressionReason: Int]

    package init(slices: [Slice] = [], suppressed: [SuppressionReason: Int] = [:]) {
        self.slices = slices
        self.suppressed = suppressed
    }

    package var total: Int { slices.reduce(0) { $0 + $1.count } }
}
