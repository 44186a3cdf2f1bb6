import GRDB

/// The values of a condition under names of ours: `:p0`, `:p1`, and so on.
struct AudienceParameters {
    private(set) var values: [String: DatabaseValue] = [:]

    /// Returns the placeholder to write into the text.
    mutating func add(_ value: some DatabaseValueConvertible) -> String {
        let name = "p\(values.count)"
        values[name] = value.databaseValue
        return ":\(name)"
    }
}
