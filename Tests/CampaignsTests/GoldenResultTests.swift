import Campaigns
import Daemon
import Foundation
import Testing

/// What `--json` and the API promise to programs: each result's keys and types, pinned by a file.
struct GoldenResultTests {
    /// One result's type, by the name of its file.
    struct Shape: Sendable, CustomTestStringConvertible {
        let name: String
        let rewritten: @Sendable (_ text: String) throws -> String

        init<Value: Codable & Sendable>(_ type: Value.Type) {
            name = "\(type)"
            rewritten = { text in try ResultJSON.text(try ResultJSON.value(type, from: text)) }
        }

        var testDescription: String { name }
    }

    static let shapes = [
        Shape(AccessTokenResult.self), Shape(ApprovalDetailResult.self), Shape(ApprovalListResult.self),
        Shape(ApprovalResult.self),
        Shape(BackupResult.self),
        Shape(CampaignDetailResult.self),
        Shape(CampaignResult.self),
        Shape(CountsResult.self),
        Shape(DaemonResult.self),
        Shape(DeviceCountResult.self),
        Shape(DeliveryPageResult.self),
        Shape(DeviceCountsResult.self),
        Shape(DeviceRemovalResult.self),
        Shape(DeviceResult.self),
        Shape(DiagnosisResult.self),
        Shape(DueResult.self),
        Shape(EventPageResult.self),
        Shape(EventResult.self),
        Shape(ExplanationResult.self),
        Shape(ExpressionCountResult.self),
        Shape(ExpressionProblemResult.self),
        Shape(HealthResult.self),
        Shape(ImportResult.self),
        Shape(LiftResult.self),
        Shape(MoveResult.self),
        Shape(OutcomePruneResult.self),
        Shape(PlanResult.self),
        Shape(PreviewResult.self),
        Shape(PruneResult.self),
        Shape(RegistrationLineResult.self),
        Shape(RestoreResult.self),
        Shape(RunPageResult.self),
        Shape(SegmentChangeResult.self),
        Shape(SegmentMembersResult.self),
        Shape(StopResult.self),
        Shape(StopsResult.self),
        Shape(TimelineResult.self),
        Shape(RenderingResult.self), Shape(ReportResult.self), Shape(RunListResult.self), Shape(RunResult.self),
        Shape(ScheduleResult.self), Shape(SegmentDetailResult.self), Shape(SegmentImportResult.self),
        Shape(SegmentResult.self), Shape(StartedResult.self), Shape(SumCheckResult.self),
        Shape(TemplateDetailResult.self), Shape(TemplateResult.self), Shape(TestResult.self),
        Shape(ValidationResult.self), Shape(VerificationResult.self), Shape(WrittenFileResult.self),
    ]

    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden")

    @Test(arguments: shapes) func `a result is written as its golden file says, key by key`(shape: Shape) throws {
        let golden = try String(contentsOf: Self.folder.appending(path: "\(shape.name).json"), encoding: .utf8)
        #expect(try shape.rewritten(golden) + "\n" == golden)
    }

    @Test func `every golden file belongs to a result, and every result has one`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(files.sorted() == Self.shapes.map { "\($0.name).json" }.sorted())
    }
}
