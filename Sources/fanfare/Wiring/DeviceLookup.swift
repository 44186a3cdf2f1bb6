import Model
import Storage

/// The one device a person means.
enum DeviceLookup {
    /// - Parameters:
    ///   - text: an installation id, a user id, a token or its last 8 characters.
    ///   - topic: as devices are registered under it.
    static func device(_ text: String, topic: String, in store: Store) async throws -> StoredDevice {
        let shown = text.count > 16 ? "…" + text.suffix(8) : text
        let found = try await store.devices(matching: text)
        guard !found.isEmpty else {
            throw Failure(
                .notFound,
                "no device \"\(shown)\" in the store; give an installation id, a user id, or the last 8 characters of "
                    + "a token")
        }
        let fitting = found.filter { $0.record.topic == topic }
        guard let device = fitting.first else {
            throw Failure(
                .notFound,
                "device \"\(shown)\" is registered for \(found[0].record.topic), the campaign is for \(topic)")
        }
        guard fitting.count == 1 else {
            throw Failure(
                .notFound,
                "\"\(shown)\" is \(fitting.count) devices, name one of them: "
                    + fitting.map { $0.record.installationID ?? $0.record.token.redacted }.joined(separator: ", "))
        }
        return device
    }
}
