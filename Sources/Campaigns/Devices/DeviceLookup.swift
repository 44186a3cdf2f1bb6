import Model
package import Store

/// The devices a person means.
package enum DeviceLookup {
    /// Those it may mean, at least one; an old token finds the device that had it.
    package static func devices(_ text: String, in store: any DeviceRegistry) async throws -> [StoredDevice] {
        let found = try await store.devices(matching: text)
        if !found.isEmpty { return found }
        if let token = DeviceToken(hex: text), let former = try await store.device(thatHad: token) { return [former] }
        throw Failure(
            .notFound,
            "no device \"\(shown(text))\" in the store; give an installation id, a user id, or the last 8 characters of "
                + "a token")
    }

    private static func shown(_ text: String) -> String {
        text.count > 16 ? "…" + text.suffix(8) : text
    }

    /// The one of a topic.
    ///
    /// - Parameters:
    ///   - text: an installation id, a user id, a token or its last 8 characters.
    ///   - topic: as devices are registered under it.
    package static func device(_ text: String, topic: String, in store: any DeviceRegistry) async throws -> StoredDevice
    {
        let shown = shown(text)
        let found = try await devices(text, in: store)
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
