package import Store
import Testing

/// One thing every store must do, written against the roles alone. An adapter's suite runs a contract's promises with
/// `@Test(arguments:)`: a promise that is listed cannot be left out.
package struct Promise: Sendable, CustomTestStringConvertible {
    /// As a sentence.
    package let name: String
    private let body: @Sendable (StoreUnderTest) async throws -> Void

    /// A promise of a store with nothing in it.
    init(_ name: String, _ check: @escaping @Sendable (any AllRoles) async throws -> Void) {
        self.name = name
        body = { store in try await check(try await store.open { _ in false }) }
    }

    /// A promise of what several processes see of one store.
    init(_ name: String, opening check: @escaping @Sendable (StoreUnderTest) async throws -> Void) {
        self.name = name
        body = check
    }

    /// The same promise for each row.
    static func each<Row: Sendable>(
        _ rows: some Sequence<Row>, _ name: (Row) -> String,
        _ check: @escaping @Sendable (any AllRoles, Row) async throws -> Void
    ) -> [Promise] {
        rows.map { row in Promise(name(row)) { store in try await check(store, row) } }
    }

    package var testDescription: String { name }

    /// Throws or records an issue unless the store, empty at the start, keeps the promise.
    package func check(_ store: StoreUnderTest) async throws { try await body(store) }
}

/// A store of its own for one promise, closed and removed by whoever made it.
package struct StoreUnderTest: Sendable {
    /// Opens the store, the same one each time: as one process beside or after another.
    package let open: @Sendable (_ hasEnded: @escaping OwnerLiveness.HasEnded) async throws -> any AllRoles

    package init(
        open: @escaping @Sendable (_ hasEnded: @escaping OwnerLiveness.HasEnded) async throws -> any AllRoles
    ) {
        self.open = open
    }

    func open() async throws -> any AllRoles { try await open { _ in false } }
}
