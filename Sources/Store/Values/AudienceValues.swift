/// The values that the active devices of an app have, for people who choose an audience.
package struct AudienceValues: Hashable, Sendable {
    package struct Value: Hashable, Sendable {
        package var name: String
        /// The number of active devices that have the value.
        package var devices: Int

        package init(_ name: String, devices: Int) {
            self.name = name
            self.devices = devices
        }
    }

    /// The maximum number of values of each kind, the most frequent ones first.
    package static let valuesMax = 100

    package var locales: [Value]
    package var countries: [Value]
    package var appVersions: [Value]
    package var tags: [Value]

    package init(locales: [Value] = [], countries: [Value] = [], appVersions: [Value] = [], tags: [Value] = []) {
        self.locales = locales
        self.countries = countries
        self.appVersions = appVersions
        self.tags = tags
    }
}
