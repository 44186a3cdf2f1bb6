import Model
import TestSupport
import Testing
import WebClient

/// A request whose address an author can write reaches the public internet, and what the operator allows besides.
@Suite(.timeLimit(.minutes(10))) struct `Where requests may go` {
    @Test(arguments: [
        "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.9.9.9", "169.254.169.254",
        "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "240.0.0.1",
        "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1",
        "::127.0.0.1", "fe80::1", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1", "2001::1", "2001:db8::1",
        "2002:7f00:1::1", "3fff::1", "100::1",
    ])
    func `an address that is not public is refused, however it is written`(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(!AddressPolicy.publicOnes(besides: []).allows(address))
        #expect(AddressPolicy.any.allows(address))
        let range = try #require(AddressRange(text))
        #expect(AddressPolicy.publicOnes(besides: [range]).allows(address))
    }

    @Test(arguments: [
        "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "17.188.0.1", "223.255.255.255",
        "::ffff:1.1.1.1", "64:ff9b::101:101", "2606:4700::1111", "2a00:1450::1", "2620:149::1",
    ])
    func `a public address is reached`(text: String) throws {
        #expect(AddressPolicy.publicOnes(besides: []).allows(try #require(IPAddress(text))))
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.0.0.0/8", "::ffff:10.0.0.1", true),
        ("::ffff:10.0.0.0/104", "10.9.9.9", true), ("fd00::/8", "fd12::1", true), ("fd00::/8", "fe12::1", false),
        ("0.0.0.0/0", "127.0.0.1", true), ("0.0.0.0/0", "::1", false), ("192.168.3.4", "192.168.3.5", false),
    ])
    func `a range has the addresses with its leading bits`(range: String, address: String, isIn: Bool) throws {
        #expect(try #require(AddressRange(range)).contains(try #require(IPAddress(address))) == isIn)
    }

    @Test(arguments: ["", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0", "host", "::1/129", "10.0.0.0/", "1/8"])
    func `what is no range is none`(text: String) {
        #expect(AddressRange(text) == nil)
    }

    private func error(_ url: String, besides: [AddressRange] = []) async -> WebError? {
        do {
            _ = try await HTTPClient(addresses: .publicOnes(besides: besides)).send(WebRequest(.get, url))
            return nil
        } catch {
            return error
        }
    }

    @Test func `a connection to this machine is not opened, by number or by name`() async throws {
        let server = try LocalServer { _ in .init(200) }
        let port = try #require(server.url.split(separator: ":").last)
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f.1"] {
            let found = await error("http://\(host):\(port)/")
            guard case .refusedAddress = found else {
                Issue.record("\(host): \(found.map { "\($0)" } ?? "answered")")
                continue
            }
            #expect(found?.description.contains("feeds.allow") == true)
        }
        #expect(server.requests.isEmpty)
        let loopback = try #require(AddressRange("127.0.0.0/8"))
        #expect(await error("http://127.0.0.1:\(port)/", besides: [loopback]) == nil)
        #expect(server.requests.count == 1)
    }

    @Test func `a redirect to an address that is not allowed is not followed`() async throws {
        let outer = try LocalServer { _ in .init(302, headers: ["Location": "http://127.0.0.2:9/metrics"]) }
        let found = await error(outer.url, besides: [try #require(AddressRange("127.0.0.1"))])
        #expect(
            found
                == .refusedRedirect(
                    url: ShownURL.text(outer.url), target: "http://127.0.0.2:9/metrics", address: "127.0.0.2"))
        // An operator who allows it would open a service of this machine to the feed's server.
        #expect(found?.description.contains("feeds.allow") == false)
        #expect(outer.requests.count == 1)
    }
}
