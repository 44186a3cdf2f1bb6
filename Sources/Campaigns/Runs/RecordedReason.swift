import Model

/// A reason that a person gives, as it goes on record: one line, without tokens, and at most ``lengthMax`` Unicode scalars long. Every
/// use case that records a reason takes it through here, whatever a form or a command has looked at before.
package enum RecordedReason {
    package static let lengthMax = 1000

    /// Throws for a longer one.
    package static func checked(_ text: String) throws -> String {
        guard !isTooLong(text) else {
            throw Failure(
                .invalidData,
                "the reason is longer than \(lengthMax.grouped) characters; shorten it, and put the rest where a link can name it"
            )
        }
        return Redaction.withoutTokens(text.withoutCommands)
    }

    package static func checked(_ text: String?) throws -> String? {
        guard let text else { return nil }
        return try checked(text) as String
    }

    /// Cuts a longer one: a stop must not fail for its reason.
    package static func cut(_ text: String) -> String {
        guard isTooLong(text) else { return Redaction.withoutTokens(text.withoutCommands) }
        return Redaction.beginning(of: text.withoutCommands, scalars: lengthMax) + "…"
    }

    private static func isTooLong(_ text: String) -> Bool {
        // The count of bytes is known, that of scalars is not.
        text.utf8.count > lengthMax && text.unicodeScalars.dropFirst(lengthMax).first != nil
    }
}
