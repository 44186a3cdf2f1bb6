import Campaigns
import Foundation
import Model
import Testing

@testable import fanfare

/// What `fanfare approvals` prints.
struct ApprovalTextTests {
    private func stage(_ choices: String) throws -> WaitingStageResult {
        try ResultJSON.value(
            WaitingStageResult.self,
            from: """
                {"run": 4, "campaign": "c", "occurrence": "o", "stage": 4, "members": "the rest", "devices": 90,
                 "reason": "it waits"\(choices)}
                """)
    }

    @Test func `a stage that waits for the choice of a variant names the variants`() throws {
        #expect(ApprovalText.text(try stage("")).contains("`fanfare approve 4 --stage 4` starts it"))
        let choice = ApprovalText.text(try stage(#", "choices": ["long", "short"]"#))
        #expect(choice.contains("`fanfare approve 4 --variant NAME` sends long or short to the rest"))
        #expect(!choice.contains("--stage"))
    }

    private func approval(_ more: String) throws -> ApprovalResult {
        try ResultJSON.value(
            ApprovalResult.self,
            from: """
                {"campaign": "c", "topic": "t", "occurrence": "o", "plan": "p", "digest": "0123456789abcdef",
                 "number": 1, "reach": 5, "state": "open", "needs": 1, "missing": 0, "asked_by": "a",
                 "asked_at": "2026-12-01T08:00:00Z", "authors": [], "signatures": [],
                 "lapses_at": "2026-12-02T08:00:00Z"\(more)}
                """)
    }

    @Test func `the state of a request says whether it starts`() throws {
        let rows = [
            ("", "c/o: approved, 1 of 1 signature", "a sender may send it"),
            (
                #", "starts_at": "2026-12-02T08:00:00Z""#, "c/o: approved, 1 of 1 signature",
                "it starts automatically on schedule"
            ),
            (
                #", "starts_at": "2026-12-02T08:00:01Z""#, "c/o: lapses before its start, 1 of 1 signature",
                "lapse at 2026-12-02T08:00:00Z, before the start at 2026-12-02T08:00:01Z: it needs to be signed again"
            ),
            (#", "is_outdated": true"#, "c/o: outdated, 1 of 1 signature", "this plan is no longer sent"),
        ]
        for (more, head, next) in rows {
            let approval = try approval(more)
            #expect(ApprovalText.head(approval) == head)
            #expect(ApprovalText.text(approval).contains(next), "\(ApprovalText.text(approval))")
        }
    }
}
