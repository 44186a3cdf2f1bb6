package import Model
package import Store

/// A condition on the table `device`, as SQL text and the values of its parameters.
///
/// The text consists only of constants of this code. Every external value is a parameter.
package struct AudienceCondition: Sendable {
    package var sql: String
    /// The values for `$1`, `$2` and so on.
    package private(set) var values: [any SQLValue]

    package init(_ sql: String = "TRUE", _ values: any SQLValue...) {
        self.sql = sql
        self.values = values
    }

    /// Adds a value, and returns its placeholder for the text.
    package mutating func add(_ value: any SQLValue) -> String {
        values.append(value)
        return "$\(values.count)"
    }
}

extension SQLSession {
    /// Compiles an audience. Segments are looked up in this transaction, and times are relative to `now`.
    ///
    /// - Parameter defined: the new definition of a segment, which replaces the recorded one.
    /// - Throws: the errors of ``AudienceResolver/resolve(_:)``.
    package func condition(
        for audience: AudienceExpression, defining defined: (name: String, expression: AudienceExpression)? = nil,
        now: Timestamp
    ) throws -> AudienceCondition {
        var resolver = AudienceResolver(self, now: now, defining: defined)
        var condition = AudienceCondition()
        condition.sql = Self.sql(of: try resolver.resolve(audience), &condition)
        return condition
    }

    package func count(
        _ audience: AudienceExpression, defining defined: (name: String, expression: AudienceExpression)?,
        now: Timestamp
    ) throws -> Int {
        let condition = try condition(for: audience, defining: defined, now: now)
        return try count("SELECT count(*) FROM device WHERE \(condition.sql)", condition.values)
    }

    /// Throws the error that a run with this audience would throw.
    package func requireUsable(_ audience: AudienceExpression, now: Timestamp) throws {
        _ = try condition(for: audience, now: now)
    }

    /// Returns the devices of an audience.
    ///
    /// - Parameter range: the range of device ids; `nil` for all.
    package func devices(
        of audience: AudienceExpression, within range: ClosedRange<Int64>?, limit: Int, now: Timestamp
    ) throws -> [StoredDevice] {
        var condition = try condition(for: audience, now: now)
        if let range {
            let bounds = "BETWEEN \(condition.add(range.lowerBound)) AND \(condition.add(range.upperBound))"
            condition.sql = "device.id \(bounds) AND \(condition.sql)"
        }
        return try StoredDevices(self).all(where: condition, limit: limit)
    }

    /// Returns the number in the only row and column of a statement's result.
    func count(_ text: String, _ values: [any SQLValue]) throws -> Int {
        try all(.once(text), values: values) { try $0.int(0) }.first ?? 0
    }
}

extension ComparisonOperator {
    package var sql: String {
        switch self {
        case .equal: "="
        case .notEqual: "<>"
        case .less: "<"
        case .lessOrEqual: "<="
        case .greater: ">"
        case .greaterOrEqual: ">="
        }
    }
}

extension AudienceOperand {
    /// The value as an element of a list of texts.
    package var listed: String {
        switch self {
        case .text(let text): text
        case .boolean(let flag): flag ? "1" : "0"
        case .time(let milliseconds): "\(milliseconds)"
        case .number(let number): "\(number)"
        }
    }
}
