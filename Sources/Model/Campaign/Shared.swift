/// A large value that all copies of its owner share.
///
/// A structure is copied field by field, with the fields of the structures it holds. A campaign has a hundred, and a
/// dozen types hold one: code to copy them was nearly half of the program. A copy of a shared value copies a reference.
@propertyWrapper
package struct Shared<Value: Sendable>: Sendable {
    private final class Storage: Sendable {
        let value: Value

        init(_ value: Value) { self.value = value }
    }

    private var storage: Storage

    package init(wrappedValue: Value) { storage = Storage(wrappedValue) }

    package var wrappedValue: Value {
        get { storage.value }
        set { storage = Storage(newValue) }
    }
}

extension Shared: Equatable where Value: Equatable {
    package static func == (one: Shared, other: Shared) -> Bool {
        one.storage === other.storage || one.wrappedValue == other.wrappedValue
    }
}

extension Shared: Hashable where Value: Hashable {
    package func hash(into hasher: inout Hasher) { wrappedValue.hash(into: &hasher) }
}
