package import Model
import Store

/// Constants of Swift types as SQL text, so that states, statuses and reasons in statements match their types.
/// External data is never part of the text. It is passed as a value.
package enum SQLConstants {
    /// Returns a list such as `'scheduled', 'running'`.
    package static func list(_ constants: [String]) -> String {
        constants.map { "'\($0)'" }.joined(separator: ", ")
    }

    package static func list(_ states: [RunState]) -> String { list(states.map(\.rawValue)) }

    /// Returns a list such as `1, 3`.
    package static func list(_ states: [DeliveryState]) -> String {
        states.map { "\($0.rawValue)" }.joined(separator: ", ")
    }

    /// Returns an expression for the word of a stored number: `CASE environment WHEN 0 THEN 'production' ELSE
    /// 'sandbox' END`. The last word is used for every other number, as in the code that reads rows.
    package static func word(of column: String, _ constants: [(code: Int64, word: String)]) -> String {
        let cases = constants.dropLast().map { "WHEN \($0.code) THEN '\($0.word)'" }.joined(separator: " ")
        return "CASE \(column) \(cases) ELSE '\(constants.last?.word ?? "")' END"
    }

    package static func environment(_ column: String) -> String {
        word(of: column, PushEnvironment.allCases.map { ($0.code, $0.rawValue) })
    }
}
