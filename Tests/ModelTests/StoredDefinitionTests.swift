import Foundation
import Model
import Testing

/// What runs are stored as must stay readable, and equal, whatever becomes of the types.
struct `Stored definitions` {
    /// One definition a line, without a version: as written by the first Fanfare.
    private static func stored() throws -> [String] {
        let fixture = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "Fixtures/stored-definitions.jsonl")
        return try String(contentsOf: fixture, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    private static func json(_ definition: RunDefinition) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(definition), as: UTF8.self)
    }

    private static func definition(_ json: String) throws -> RunDefinition {
        try JSONDecoder().decode(RunDefinition.self, from: Data(json.utf8))
    }

    @Test func `mean what they meant when they were written`() throws {
        let samples = StoredDefinitionSamples.all
        let stored = try Self.stored()
        try #require(stored.count == samples.count)
        for (json, sample) in zip(stored, samples) { #expect(try Self.definition(json) == sample) }
    }

    @Test func `are written as ever, but for their version`() throws {
        let stored = try Self.stored()
        try #require(stored.count == StoredDefinitionSamples.all.count)
        for json in stored {
            let written = try Self.json(try Self.definition(json))
            #expect(written.replacing(",\"version\":1", with: "", maxReplacements: 1) == json)
            #expect(written.contains(",\"version\":1"))
            #expect(try Self.json(try Self.definition(written)) == written)
        }
    }

    @Test(arguments: [0, 2, -1]) func `of a version nobody knows are refused`(version: Int) throws {
        let json = try Self.json(StoredDefinitionSamples.everyKey).replacing(
            ",\"version\":1", with: ",\"version\":\(version)")
        #expect(throws: DecodingError.self) { try Self.definition(json) }
    }

    /// SQL reads these out of the JSON.
    @Test func `hold the paths that queries name`() throws {
        let object = try JSONSerialization.jsonObject(with: Data(try Self.json(StoredDefinitionSamples.everyKey).utf8))
        let campaign = try #require((object as? [String: Any])?["campaign"] as? [String: Any])
        #expect(campaign["topic"] as? String == "com.example.wendercast")
        #expect(campaign["pushType"] as? String == "alert")
        #expect((campaign["variants"] as? [[String: Any]])?.compactMap { $0["name"] as? String } == ["a", "b"])
    }
}

/// The words and numbers of the store. A row that has to be changed here breaks stores that exist.
struct `Stored words and numbers` {
    private static func words<Value: RawRepresentable<String> & CaseIterable>(_ type: Value.Type) -> String {
        Value.allCases.map(\.rawValue).joined(separator: " ")
    }

    @Test func `are these words`() {
        let rows = [
            (Self.words(RunState.self), "scheduled running paused finished cancelled failed missed"),
            (
                Self.words(RunHalt.self),
                "unreachable credential breaker late stage approval volume grown restored unsuccessful"
            ),
            (
                Self.words(SuppressionReason.self),
                "silent_budget frequency_cap coalesced quiet_hours expired holdout alerts_not_allowed wrong_environment token_gone "
                    + "payload_too_large cancelled late unknown_zone duplicate_of_user"
            ),
            (
                Self.words(EventKind.self),
                "run_created run_claimed run_recovered run_scheduled run_running run_paused run_finished run_cancelled "
                    + "run_failed run_missed run_late run_stage sending_stopped stop_lifted run_stopped guard_overridden files_read feed_held clock_stepped webhook_given_up devices_imported "
                    + "devices_exported devices_pruned feedback_imported outcomes_pruned backed_up store_restored restore_confirmed store_moved token_created token_revoked token_changed person_invited person_joined key_uploaded configuration_changed segment_defined "
                    + "segment_changed segment_removed device_removed file_written file_deleted change_held change_released change_rejected signed_in signed_out sign_in_refused approval_requested plan_signed "
                    + "plan_rejected approval_withdrawn approval_used glass_broken values_given values_removed"
            ),
            (Self.words(StageVerdict.self), "go halt undecided"),
            (Self.words(VariantRule.Measure.self), "opens conversion"),
            (Self.words(VariantRule.Undecided.self), "wait first"),
            (Self.words(VariantDecision.Cause.self), "winner first person"),
            (Self.words(AccessRole.self), "viewer author sender approver admin registrar"),
            (
                Self.words(PushType.self),
                "alert background location voip complication fileprovider mdm liveactivity pushtotalk widgets controls"
            ),
            (
                Self.words(FeedField.self),
                "item.title item.link item.guid item.summary item.author item.published item.enclosure item.episode "
                    + "item.season feed.title feed.link"
            ),
            (Self.words(Campaign.OnUnknown.self), "resend skip"),
            (Self.words(Campaign.Dedupe.self), "all user"),
            (Self.words(Schedule.MissedZone.self), "send_now next_day drop"),
            (Self.words(Schedule.QuietHours.Policy.self), "defer drop"),
            (Self.words(Template.InterruptionLevel.self), "passive active critical time-sensitive"),
            (Self.words(LiveActivity.Event.self), "start update end"),
            (Self.words(ComparisonOperator.self), "= != < <= > >="),
            (Self.words(PushEnvironment.self), "production sandbox"),
            (Self.words(DeviceStatus.self), "active suspended gone"),
        ]
        for (words, expected) in rows { #expect(words == expected) }
        #expect(PushPriority.allCases.map(\.rawValue) == [10, 5, 1])
    }

    @Test func `are these numbers, read back as what they were`() {
        #expect(DeliveryState.allCases.map(\.code) == [0, 1, 2, 3, 4])
        #expect(DeliveryState.allCases.map(\.name) == ["pending", "accepted", "rejected", "unknown", "suppressed"])
        #expect(DeliveryState.allCases.map { DeliveryState(code: $0.code) } == DeliveryState.allCases)
        #expect(DeviceStatus.allCases.map(\.code) == [0, 1, 2])
        #expect(DeviceStatus.allCases.map { DeviceStatus(code: $0.code) } == DeviceStatus.allCases)
        #expect(PushEnvironment.allCases.map(\.code) == [0, 1])
        #expect(PushEnvironment.allCases.map { PushEnvironment(code: $0.code) } == PushEnvironment.allCases)
    }

    @Test(arguments: [-1, 5, 99]) func `that stand for nothing are read as what does no harm`(code: Int64) {
        #expect(DeliveryState(code: code) == .unknown)
        #expect(DeviceStatus(code: code) == .gone)
    }

    @Test func `name the state that a run has entered`() {
        for state in RunState.allCases { #expect(EventKind.entered(state).rawValue == "run_\(state.rawValue)") }
        for halt in RunHalt.allCases {
            #expect(EventKind.entered(.paused, halt: halt).rawValue == (halt == .late ? "run_late" : "run_paused"))
        }
    }
}
