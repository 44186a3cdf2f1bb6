/// What a backup holds.
package struct BackupSummary: Hashable, Sendable {
    package var path: String
    /// Of the schema.
    package var version: Int
    package var bytes: Int
    package var devices: Int
    package var runs: Int

    package init(path: String, version: Int, bytes: Int, devices: Int, runs: Int) {
        self.path = path
        self.version = version
        self.bytes = bytes
        self.devices = devices
        self.runs = runs
    }
}
