import Testing

@testable import HTTP2

struct AddressSequenceTests {
    private func addresses(_ hosts: String...) throws -> [SocketAddress] {
        try hosts.map { try #require(SocketAddress.written(host: $0, port: 443)) }
    }

    @Test(arguments: [
        (1, ["10.0.0.2", "10.0.0.3", "10.0.0.1"]), (2, ["10.0.0.3", "10.0.0.1", "10.0.0.2"]),
        (3, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]), (-1, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]),
    ])
    func `each turn begins with another address, whatever the resolver shuffled`(rotation: Int, sequence: [String])
        throws
    {
        let found = try addresses("10.0.0.3", "10.0.0.1", "10.0.0.2")
        #expect(AddressSequence.of(found, rotation: rotation).map(\.host) == sequence)
    }

    @Test func `families alternate, beginning with the resolver's choice`() throws {
        let found = try addresses("2001:db8::1", "2001:db8::2", "10.0.0.1", "2001:db8::3")
        let sequence = AddressSequence.of(found, rotation: 0).map(\.host)
        #expect(sequence == ["2001:db8::1", "10.0.0.1", "2001:db8::2", "2001:db8::3"])
        let other = AddressSequence.of(try addresses("10.0.0.1", "2001:db8::1"), rotation: 5).map(\.host)
        #expect(other == ["10.0.0.1", "2001:db8::1"])
    }

    @Test func `nothing found is nothing to try, and a name is no address`() {
        #expect(AddressSequence.of([], rotation: 3).isEmpty)
        #expect(SocketAddress.written(host: "localhost", port: 1) == nil)
    }
}
