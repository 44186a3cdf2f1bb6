import Systemd
import Testing

struct `The account of a process` {
    @Test func `a uid without a name is called by its number, whatever the environment says`() {
        #expect(SignedInUser.name(of: 0) == "root")
        #expect(SignedInUser.name(of: 4_000_000_123) == "uid-4000000123")
    }
}
