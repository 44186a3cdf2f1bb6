import APNs
import Testing

struct TransportErrorTests {
    @Test(arguments: ["this process has no free file descriptor", "Too many open files"])
    func `too few descriptors are not blamed on the network`(reason: String) throws {
        let endpoint = try #require(PushEndpoint(parsing: "127.0.0.1:8443"))
        let words = TransportError.unreachable(endpoint, reason: reason).description
        #expect(words.hasSuffix("\(reason); raise LimitNOFILE= in the unit, or ulimit -n in a shell"), "\(words)")
        let refused = TransportError.unreachable(endpoint, reason: "Connection refused").description
        #expect(refused.hasSuffix("Connection refused; check the host, the network and the firewall (TCP 443 or 2197)"))
    }
}
