package import Model
import Store

/// Constants of our types as SQL text, so that a state, a status or a reason stands in a statement as its type has it.
/// Data never comes this way: it is given for `$1`.
package enum SQLConstants {
    /// `'scheduled', 'running'`.
    package static func list(_ words: [String]) -> String {
        words.map { "'\($0)'" }.joined(separator: ", ")
    }

    package static func list(_ states: [RunState]) -> String { list(states.map(\.rawValue)) }

    /// `1, 3`.
    package static func list(_ states: [DeliveryState]) -> String {
        states.map { "\($0.rawValue)" }.joined(separator: ", ")
    }

    /// The word of a stored number: `CASE environment WHEN 0 THEN 'production' ELSE 'sandbox' END`. The last one stands
    /// for every other number, as it does when they are read.
    package static func word(of column: String, _ words: [(code: Int64, word: String)]) -> String {
        let cases = words.dropLast().map { "WHEN \($0.code) THEN '\($0.word)'" }.joined(separator: " ")
        return "CASE \(column) \(cases) ELSE '\(words.last?.word ?? "")' END"
    }

    package static func environment(_ column: String) -> String {
        word(of: column, PushEnvironment.allCases.map { ($0.code, $0.rawValue) })
    }
}
