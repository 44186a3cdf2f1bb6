import HTTP2
import Testing

@testable import APNs

struct GoAwayReasonTests {
    @Test(arguments: [
        (#"{"reason":"Shutdown"}"#, "Shutdown", false),
        (#"{"reason":"BadCertificateEnvironment"}"#, "BadCertificateEnvironment", true),
        (#"{"reason":"BadCertificate"}"#, "BadCertificate", true),
        ("going\u{1b}[2J down\n", "going[2J down", false), ("", "GOAWAY with code 11", false),
        (#"{"cause":"x"}"#, #"{"cause":"x"}"#, false),
    ])
    func `JSON, plain text and nothing are all put into words`(data: String, words: String, isCertificate: Bool) {
        let reason = GoAwayReason(GoAwayNotice(lastStream: 7, code: 11, debugData: Array(data.utf8)))
        #expect(reason.description == words)
        #expect(reason.isAboutCertificate == isCertificate)
    }

    @Test func `a long text is cut`() {
        let notice = GoAwayNotice(lastStream: 7, code: 0, debugData: [UInt8](repeating: 0x61, count: 900))
        #expect(GoAwayReason(notice).description.count == 200)
    }
}
