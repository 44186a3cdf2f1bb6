package import Model

/// A value for a parameter such as `$1` of either engine. `nil` of an optional is NULL.
package protocol SQLValue: Sendable {
    var argument: SQLArgument { get }
}

/// A value with its type, which both engines accept. A moment is a whole number of milliseconds UTC.
package enum SQLArgument: Hashable, Sendable {
    case integer(Int64?)
    case real(Double?)
    case bool(Bool?)
    case text(String?)
    case bytes([UInt8]?)
    /// Several texts as one value; see ``SQLDialect/isAny(_:)``.
    case texts([String])
    case integers([Int64])
}

/// A value whose type is known even if the value is `nil`.
package protocol TypedSQLValue: SQLValue {
    static func argument(_ value: Self?) -> SQLArgument
}

extension TypedSQLValue {
    package var argument: SQLArgument { Self.argument(self) }
}

extension Int64: TypedSQLValue {
    package static func argument(_ value: Int64?) -> SQLArgument { .integer(value) }
}

extension Int: TypedSQLValue {
    package static func argument(_ value: Int?) -> SQLArgument { .integer(value.map { Int64($0) }) }
}

extension Timestamp: TypedSQLValue {
    package static func argument(_ value: Timestamp?) -> SQLArgument { .integer(value?.milliseconds) }
}

extension Double: TypedSQLValue {
    package static func argument(_ value: Double?) -> SQLArgument { .real(value) }
}

extension Bool: TypedSQLValue {
    package static func argument(_ value: Bool?) -> SQLArgument { .bool(value) }
}

extension String: TypedSQLValue {
    package static func argument(_ value: String?) -> SQLArgument { .text(value) }
}

extension Optional: SQLValue where Wrapped: TypedSQLValue {
    package var argument: SQLArgument { Wrapped.argument(self) }
}

/// A type whose arrays are one value.
package protocol SQLElement: Sendable {
    static func argument(_ elements: [Self]) -> SQLArgument
}

extension UInt8: SQLElement {
    package static func argument(_ elements: [UInt8]) -> SQLArgument { .bytes(elements) }
}

extension String: SQLElement {
    package static func argument(_ elements: [String]) -> SQLArgument { .texts(elements) }
}

extension Int64: SQLElement {
    package static func argument(_ elements: [Int64]) -> SQLArgument { .integers(elements) }
}

extension Array: SQLValue where Element: SQLElement {
    package var argument: SQLArgument { Element.argument(self) }
}
