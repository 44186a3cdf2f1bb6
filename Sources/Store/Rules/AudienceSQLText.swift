/// The little that must be known about the text of an `audience_sql` before and behind what a database
/// compiles.
package enum AudienceSQLText {
    /// For how long one may run.
    package static let timeLimit: Duration = .seconds(10)

    /// The first word in upper case if no query begins with it, so that it can be named: `DELETE`.
    package static func otherVerb(in sql: String) -> String? {
        let word = trimmed(sql[...]).prefix { $0.isLetter || $0 == "_" }.uppercased()
        return word.isEmpty || ["SELECT", "WITH", "VALUES"].contains(word) ? nil : word
    }

    /// True for blanks, comments and semicolons.
    package static func isBlank(_ sql: String) -> Bool { trimmed(sql[...]).isEmpty }

    /// Without blanks, comments and semicolons at the start.
    private static func trimmed(_ sql: Substring) -> Substring {
        var rest = sql
        while true {
            rest = rest.drop { $0.isWhitespace || $0 == ";" }
            if rest.hasPrefix("--") {
                rest = rest.drop { !$0.isNewline }
            } else if rest.hasPrefix("/*") {
                let inside = rest.dropFirst(2)
                rest = inside.firstRange(of: "*/").map { inside[$0.upperBound...] } ?? inside.suffix(0)
            } else {
                return rest
            }
        }
    }
}
