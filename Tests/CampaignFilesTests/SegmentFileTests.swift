import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct SegmentFileTests {
    private func read(_ text: String) throws -> ([SegmentMember], ReadCounts, String) {
        let folder = try TemporaryDirectory()
        let rejects = folder.file("rejects.csv")
        let reader = SegmentFileReader(path: try folder.write(text, to: "members.csv"), rejectsPath: rejects)
        var members: [SegmentMember] = []
        let counts = try reader.forEachBatch(size: 2) { members += $0 }
        return (members, counts, counts.rejected > 0 ? try Files.text(rejects) : "")
    }

    @Test(arguments: [
        ("i-1\ni-2\n\ni-3", [SegmentMember.installationID("i-1"), .installationID("i-2"), .installationID("i-3")]),
        ("installation_id\r\ni-1\r\n", [.installationID("i-1")]),
        ("User_ID\n\"u,1\"\nu-2", [.userID("u,1"), .userID("u-2")]),
        ("installation_id\n", []),
        ("\u{FEFF}user_id\n7", [.userID("7")]),
    ])
    func `one id per line, of the kind that a header names`(text: String, members: [SegmentMember]) throws {
        let result = try read(text)
        #expect(result.0 == members)
        #expect(result.1.read == members.count)
    }

    @Test func `tokens are read as bytes and bad ones rejected without showing them`() throws {
        let token = DeviceImportTests.token
        let (members, counts, rejects) = try read("token\n\(token)\n\(token)0\nabc,def\n")
        #expect(members == [DeviceToken(hex: token).map { .token($0) }])
        #expect(counts.rejected == 2)
        #expect(rejects.contains("\n3,\"token has an odd number of hex digits\",\"…B2c3D0\"") == false)
        #expect(rejects.contains("\n3,\"token has an odd number of hex digits\",\"…a1B2c3D0\""))
        #expect(!rejects.contains(token))
    }

    @Test(arguments: ["instalation_id\na", "user_id,token\na,b", "userid\n1", "a,b\nc,d", ""])
    func `a header that is none is refused`(text: String) {
        #expect(throws: ImportError.self) { _ = try read(text) }
    }
}
