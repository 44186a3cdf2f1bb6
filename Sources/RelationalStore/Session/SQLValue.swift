package import Model

/// What can be given to a statement of either engine for `$1`. `nil` of an optional is NULL.
package protocol SQLValue: Sendable {
    var argument: SQLArgument { get }
}

/// A value with its type, which both engines know how to take. A moment is a whole number of milliseconds UTC.
package enum SQLArgument: Hashable, Sendable {
    case integer(Int64?)
    case real(Double?)
    case bool(Bool?)
    case text(String?)
    case bytes([UInt8]?)
    /// Several as one value, see ``SQLDialect/isAny(_:)``.
    case texts([String])
    case integers([Int64])
}

/// A value whose type is known also where there is none.
package protocol TypedSQLValue: SQLValue {
    static var null: SQLArgument { get }
}

extension Int64: TypedSQLValue {
    package static var null: SQLArgument { .integer(nil) }
    package var argument: SQLArgument { .integer(self) }
}

extension Int: TypedSQLValue {
    package static var null: SQLArgument { .integer(nil) }
    package var argument: SQLArgument { .integer(Int64(self)) }
}

extension Timestamp: TypedSQLValue {
    package static var null: SQLArgument { .integer(nil) }
    package var argument: SQLArgument { .integer(milliseconds) }
}

extension Double: TypedSQLValue {
    package static var null: SQLArgument { .real(nil) }
    package var argument: SQLArgument { .real(self) }
}

extension Bool: TypedSQLValue {
    package static var null: SQLArgument { .bool(nil) }
    package var argument: SQLArgument { .bool(self) }
}

extension String: TypedSQLValue {
    package static var null: SQLArgument { .text(nil) }
    package var argument: SQLArgument { .text(self) }
}

extension Optional: SQLValue where Wrapped: TypedSQLValue {
    package var argument: SQLArgument { self?.argument ?? Wrapped.null }
}

/// What an array of is one value.
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
