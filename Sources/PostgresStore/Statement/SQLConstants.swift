import Model
import Store

/// Constants of our types as SQL text, so that a state, a status or a reason stands in a statement as its type has it.
/// Data never comes this way: it is given for `$1`.
enum SQLConstants {
    /// `'scheduled', 'running'`.
    static func list(_ words: [String]) -> String {
        words.map { "'\($0)'" }.joined(separator: ", ")
    }

    static func list(_ states: [RunState]) -> String { list(states.map(\.rawValue)) }

    /// `1, 3`.
    static func list(_ states: [DeliveryState]) -> String {
        states.map { "\($0.rawValue)" }.joined(separator: ", ")
    }

    /// The word of a stored number: `CASE environment WHEN 0 THEN 'production' ELSE 'sandbox' END`. The last one stands
    /// for every other number, as it does when they are read.
    static func word(of column: String, _ words: [(code: Int64, word: String)]) -> String {
        let cases = words.dropLast().map { "WHEN \($0.code) THEN '\($0.word)'" }.joined(separator: " ")
        return "CASE \(column) \(cases) ELSE '\(words.last?.word ?? "")' END"
    }

    static func environment(_ column: String) -> String {
        word(of: column, PushEnvironment.allCases.map { ($0.code, $0.rawValue) })
    }

    /// A stored moment as `Timestamp.iso8601` writes it.
    static func moment(_ column: String) -> String { time(column, "YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"") }

    /// The same without what is less than a second.
    static func second(_ column: String) -> String { time(column, "YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"") }

    private static func time(_ column: String, _ format: String) -> String {
        "to_char(to_timestamp(\(column) / 1000.0) AT TIME ZONE 'UTC', '\(format)')"
    }
}
