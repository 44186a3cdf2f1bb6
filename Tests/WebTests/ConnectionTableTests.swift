import Synchronization
import Testing

@testable import Web

/// Who makes room when a server is crowded.
struct ConnectionTableTests {
    private final class Closed: Sendable {
        let names = Mutex<[String]>([])
    }

    private let left = Closed()

    private func connection(
        _ name: String, _ address: String = "192.0.2.1", waits: Duration? = .zero, known: Bool = false
    ) -> ConnectionTable.Connection {
        .init(address: address, waitsSince: waits, isKnown: known) { [left] in left.names.withLock { $0.append(name) } }
    }

    private var names: [String] { left.names.withLock { $0 } }

    @Test func `the connection that keeps the server waiting longest goes`() {
        let table = ConnectionTable(crowdedAt: 3)
        #expect(table.admit(connection("new", waits: .seconds(9))) != nil)
        #expect(table.admit(connection("old", waits: .seconds(1))) != nil)
        #expect(table.admit(connection("at work", waits: nil)) != nil)
        #expect(names == [])
        #expect(table.admit(connection("next", waits: .seconds(10))) != nil)
        #expect(names == ["old"])
    }

    @Test func `a caller who is known is spared, and one whose answer is made is never pushed out`() {
        let table = ConnectionTable(crowdedAt: 2)
        let known = table.admit(connection("known", waits: .seconds(1), known: true))
        #expect(table.admit(connection("unknown", waits: .seconds(5))) != nil)
        #expect(table.admit(connection("at work", waits: nil)) != nil)
        #expect(names == ["unknown"])
        #expect(table.admit(connection("also at work", waits: nil)) != nil)
        #expect(names == ["unknown", "known"])
        if let known { table.left(known) }
        // Nothing is left to push out.
        #expect(table.admit(connection("elsewhere")) == nil)
        #expect(table.admit(connection("a health check", "127.0.0.1")) != nil)
    }

    @Test func `the address with most connections makes room first`() {
        let table = ConnectionTable(crowdedAt: 4)
        _ = table.admit(connection("only one", "192.0.2.9", waits: .zero))
        for number in 1...3 { _ = table.admit(connection("many \(number)", waits: .seconds(number))) }
        _ = table.admit(connection("next", "192.0.2.8", waits: .seconds(9)))
        #expect(names == ["many 1"])
    }
}
