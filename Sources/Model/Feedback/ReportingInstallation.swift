/// An installation that reports with a secret of its own.
package struct ReportingInstallation: Hashable, Sendable {
    package var device: Int64
    package var installationID: String
    package var topic: String

    package init(device: Int64, installationID: String, topic: String) {
        self.device = device
        self.installationID = installationID
        self.topic = topic
    }
}
