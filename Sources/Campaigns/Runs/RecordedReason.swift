import Model

/// A reason that a person gives, as it is recorded: one line, without tokens, at most ``lengthMax`` Unicode scalars
/// long. Every use case that records a reason passes it through this type, even if a form or a command has checked it
/// before.
package enum RecordedReason {
    package static let lengthMax = 1000

    /// Returns the reason to record. Throws if it is too long.
    package static func checked(_ text: String) throws -> String {
        guard !isTooLong(text) else {
            throw Failure(
                .invalidData,
                "the reason is longer than \(lengthMax.grouped) characters; shorten it, and link to the rest"
            )
        }
        return Redaction.withoutTokens(text.withoutCommands)
    }

    /// Returns the text to record, or `nil` if a person left it blank.
    package static func given(_ text: String?) throws -> String? {
        let trimmed = text.map { String($0.drop(while: \.isWhitespace)) }
        return try checked(trimmed.flatMap { $0.isEmpty ? nil : $0 })
    }

    package static func checked(_ text: String?) throws -> String? {
        guard let text else { return nil }
        return try checked(text) as String
    }

    /// Returns the reason to record, shortened if it is too long: a stop must not fail because of its reason.
    package static func cut(_ text: String) -> String {
        guard isTooLong(text) else { return Redaction.withoutTokens(text.withoutCommands) }
        return Redaction.beginning(of: text.withoutCommands, scalars: lengthMax) + "…"
    }

    private static func isTooLong(_ text: String) -> Bool {
        // Compare the bytes first: their number is known, but scalars must be counted.
        text.utf8.count > lengthMax && text.unicodeScalars.dropFirst(lengthMax).first != nil
    }
}
