/// What a push to a Live Activity says besides its alert (`apns-protocol.md` section 5).
package struct LiveActivity: Hashable, Sendable, Codable {
    package enum Event: String, Hashable, Sendable, Codable, CaseIterable {
        case start, update, end
    }

    /// A date in the payload, in whole seconds there.
    package enum Moment: Hashable, Sendable, Codable {
        case at(Timestamp)
        /// So long after the push is sent.
        case afterSending(Duration)
    }

    package var event: Event
    /// Must decode as the app's `ContentState`; required but for `end`.
    package var contentState: [TemplateValue.Member]?
    /// With `start` only, as `attributes`, `inputPushToken` and `inputPushChannel` are.
    package var attributesType: String?
    package var attributes: [TemplateValue.Member]?
    /// Asks the device for a token for later updates.
    package var inputPushToken: Bool
    /// The broadcast channel to listen on, base64.
    package var inputPushChannel: TemplateText?
    package var staleDate: Moment?
    /// When the ended activity leaves the screen; a moment in the past: at once.
    package var dismissalDate: Moment?

    package init(event: Event) {
        self.event = event
        inputPushToken = false
    }

    /// Every text anywhere inside.
    package var texts: [TemplateText] {
        ((contentState ?? []) + (attributes ?? [])).flatMap(\.value.texts) + [inputPushChannel].compactMap(\.self)
    }
}
