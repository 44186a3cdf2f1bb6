/// A provider token key that the simulator knows, as Apple does from the developer account.
package struct SimulatorKey: Sendable {
    package var keyID: String
    package var teamID: String
    /// The `.p8` private key, or the public key alone; PEM.
    package var pem: String
    /// Keys made before 2025 work in both.
    package var environments: Set<SimulatorEnvironment>
    /// Bundle ids of a topic-specific key; nil: every topic of the team.
    package var topics: Set<String>?

    package init(
        keyID: String, teamID: String, pem: String,
        environments: Set<SimulatorEnvironment> = Set(SimulatorEnvironment.allCases), topics: Set<String>? = nil
    ) {
        self.keyID = keyID
        self.teamID = teamID
        self.pem = pem
        self.environments = environments
        self.topics = topics
    }
}
