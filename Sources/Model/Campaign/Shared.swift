/// A large value that all copies of its owner share.
///
/// A structure is copied field by field, including the fields of the structures it holds. A campaign has about 100
/// fields, and many types hold one: the code for these copies was nearly half of the compiled `Campaigns`. A copy of a
/// shared value copies one reference. A change makes a new value, so copies stay independent.
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
