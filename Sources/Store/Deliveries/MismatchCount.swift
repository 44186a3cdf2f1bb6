package import Model

/// How many deliveries of an environment APNs decided on, and how many of them it found in the wrong place.
package struct MismatchCount: Hashable, Sendable {
    package var environment: PushEnvironment
    package var all: Int
    /// BadDeviceToken or DeviceTokenNotForTopic.
    package var wrong: Int

    package init(environment: PushEnvironment, all: Int, wrong: Int) {
        self.environment = environment
        self.all = all
        self.wrong = wrong
    }
}
