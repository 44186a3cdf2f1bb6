import Glibc
import Testing
@testable import HTTP2

struct `A process that gets no more memory` {
    /// A library makes of it whatever failed first, such as a certificate that it finds too weak.
    @Test func `is told from one that does, so that no certificate is blamed`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            guard !MemoryProbe.isShort else { exit(1) }
            // Less than it has: what it has it keeps.
            var limit = rlimit(rlim_cur: 1 << 20, rlim_max: 1 << 20)
            guard setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0 else { exit(2) }
            exit(MemoryProbe.isShort ? 7 : 3)
        }
    }
}
