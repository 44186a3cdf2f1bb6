/// What a look at everything a store promises has found; see ``Store/verify(budgets:faultsMax:)``.
package struct Verification: Hashable, Sendable {
    /// One promise, and where it is broken.
    package struct Check: Hashable, Sendable {
        /// Short and stable, for programs.
        package var name: String
        /// What must hold, in words.
        package var promise: String
        /// All there are, or more than are listed at least where ``isCountAtLeast``.
        package var faultCount: Int
        /// Looking stopped early; there may be more.
        package var isCountAtLeast: Bool
        /// The first of them.
        package var faults: [StoreFault]

        package init(
            _ name: String, _ promise: String, faults: [StoreFault] = [], count: Int? = nil,
            isCountAtLeast: Bool = false
        ) {
            self.name = name
            self.promise = promise
            self.faults = faults
            faultCount = count ?? faults.count
            self.isCountAtLeast = isCountAtLeast
        }
    }

    package var checks: [Check]

    package init(checks: [Check]) {
        self.checks = checks
    }

    /// True when every promise holds.
    package var isSound: Bool { checks.allSatisfy { $0.faultCount == 0 } }
    package var faultCount: Int { checks.reduce(0) { $0 + $1.faultCount } }

    package subscript(name: String) -> Check? { checks.first { $0.name == name } }
}

/// One place where a store breaks a promise. Holds no whole token.
package struct StoreFault: Hashable, Sendable {
    package var run: Int64?
    package var device: Int64?
    /// The last 8 characters of the device's token, where the device is stored.
    package var tokenEnd: String?
    /// What is wrong, without naming run and device again.
    package var what: String

    package init(run: Int64? = nil, device: Int64? = nil, _ what: String) {
        self.run = run
        self.device = device
        self.what = what
    }
}
