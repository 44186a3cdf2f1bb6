import GRDB
import Store
import Model

/// A literal in the form its column is stored in.
struct AudienceOperand {
    let value: DatabaseValue
    /// The same as an element of a list.
    let json: String

    /// Throws ``StoreError/unsuitableValue(field:value:)`` for a literal of another kind than the field's.
    init(_ literal: AudienceValue, for field: AudienceField) throws {
        switch (field.kind, literal) {
        case (.text, .text(let text)), (.locale, .text(let text)): self.init(text)
        case (.locale, .locale(let tag)): self.init(tag.description)
        case (.version, .version(let version)): self.init(version.sortKey)
        case (.boolean, .boolean(let flag)): self.init(flag ? Int64(1) : 0)
        case (.time, .time(let moment)): self.init(moment.milliseconds)
        case (.number, .number(let number)) where number.isFinite: self.init(number)
        default: throw StoreError.unsuitableValue(field: field.name, value: "\(literal)")
        }
    }

    private init(_ value: some DatabaseValueConvertible & CustomStringConvertible) {
        self.value = value.databaseValue
        json = value.description
    }
}
