package import Store
import Testing

/// One thing every store must do, written against the roles alone. An adapter's suite runs a contract's promises with
/// `@Test(arguments:)`: a promise that is listed cannot be left out.
package struct Promise: Sendable, CustomTestStringConvertible {
    /// As a sentence.
    package let name: String
    private let body: @Sendable (StoreUnderTest) async throws -> Void

    /// A promise of a store with nothing in it.
    init(_ name: String, _ body: @escaping @Sendable (any AllRoles) async throws -> Void) {
        self.name = name
        self.body = { stores in try await body(try await stores.open()) }
    }

    /// A promise of what several processes see of one store.
    init(_ name: String, opening body: @escaping @Sendable (StoreUnderTest) async throws -> Void) {
        self.name = name
        self.body = body
    }

    /// A promise of a store whose runs were all left by owners that are gone.
    static func left(_ name: String, _ body: @escaping @Sendable (any AllRoles) async throws -> Void) -> Promise {
        Promise(name, opening: { stores in try await body(try await stores.open { _ in false }) })
    }

    /// The same promise for each row.
    static func each<Row: Sendable>(
        _ rows: some Sequence<Row>, _ name: (Row) -> String,
        _ body: @escaping @Sendable (any AllRoles, Row) async throws -> Void
    ) -> [Promise] {
        rows.map { row in Promise(name(row)) { store in try await body(store, row) } }
    }

    static func each<Row: Sendable>(
        _ rows: some Sequence<Row>, _ name: (Row) -> String,
        opening body: @escaping @Sendable (StoreUnderTest, Row) async throws -> Void
    ) -> [Promise] {
        rows.map { row in Promise(name(row), opening: { stores in try await body(stores, row) }) }
    }

    package var testDescription: String { name }

    /// Throws or records an issue unless the store, empty at the start, keeps the promise.
    package func check(_ stores: StoreUnderTest) async throws { try await body(stores) }
}

/// A list of promises, one after the other.
@resultBuilder
enum PromiseList {
    static func buildExpression(_ promise: Promise) -> [Promise] { [promise] }
    static func buildExpression(_ promises: [Promise]) -> [Promise] { promises }
    static func buildBlock(_ parts: [Promise]...) -> [Promise] { parts.flatMap(\.self) }
}

/// A store of its own for one promise, closed and removed by the creator of it. Closing it before is allowed.
package struct StoreUnderTest: Sendable {
    package typealias Opening =
        @Sendable (_ isAlive: @escaping OwnerLiveness.IsAlive) async throws -> any AllRoles

    /// Opens the store, the same one each time: as one process beside or after another, that is told who lives.
    package let open: Opening
    /// Opens the store as it would be found if the process that has it open died at this moment, without its help.
    package let openAfterCrash: Opening
    /// One more store with nothing in it.
    package let another: @Sendable () async throws -> StoreUnderTest
    /// What an administrator does once the store is there, for an `audience_sql`.
    package let admitAnalysts: @Sendable () async throws -> Void
    /// Changes rows as a program that knows nothing of Fanfare would.
    package let damage: @Sendable (_ sql: String) async throws -> Void

    package init(
        open: @escaping Opening, openAfterCrash: @escaping Opening,
        another: @escaping @Sendable () async throws -> StoreUnderTest,
        admitAnalysts: @escaping @Sendable () async throws -> Void = {},
        damage: @escaping @Sendable (_ sql: String) async throws -> Void
    ) {
        self.damage = damage
        self.admitAnalysts = admitAnalysts
        self.open = open
        self.openAfterCrash = openAfterCrash
        self.another = another
    }

    func open() async throws -> any AllRoles { try await open { _ in true } }
}
