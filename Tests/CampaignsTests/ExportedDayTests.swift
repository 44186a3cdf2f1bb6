import Campaigns
import Model
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

/// The files of an export hold whole days, also of reports whose retention ends in the middle of a day.
@Suite(.timeLimit(.minutes(10)))
struct ExportedDayTests {
    /// The files of an export by name, as a folder keeps them.
    private final class Folder: Sendable {
        private let written = Mutex<[String: [UInt8]]>([:])

        var files: [String: [UInt8]] { written.withLock { $0 } }

        func open(_ name: String) -> File { File(name, self) }

        final class File: ExportData.Target {
            private let name: String
            private let folder: Folder
            private var bytes: [UInt8] = []

            init(_ name: String, _ folder: Folder) {
                self.name = name
                self.folder = folder
            }

            func write(_ bytes: [UInt8]) throws { self.bytes += bytes }

            func finish() throws { folder.written.withLock { $0[name] = bytes } }
        }
    }

    @Test func `runs that changed since a moment are written again, with all runs of their days`() async throws {
        let scene = try PipelineScene()
        let store: any AllRoles = scene.store
        let first = scene.clock.now
        var runs: [Run] = []
        for name in ["over", "late", "open"] {
            runs.append(try await scene.start(scene.definition(), occurrence: name))
        }
        try await store.change(runs[0].id, to: .cancelled, reason: nil, now: first, by: "anna")
        let later = first + .seconds(4 * 86_400)
        try await store.change(runs[1].id, to: .cancelled, reason: nil, now: later, by: "anna")
        let folder = Folder()
        func export(_ table: ExportTable, since: Timestamp?) async throws -> [String: Int] {
            let written = try await ExportData(store: store, version: "1").write(
                ExportData.Question(table, format: .csv, since: since), by: "anna", now: later
            ) { folder.open("\($0)") }
            return ["files": written.files, "rows": written.rows]
        }
        // The run that ended on the first day has not changed. The file of a day has all runs of the day.
        #expect(try await export(.timeline, since: later)["files"] == 2)
        #expect(folder.files.keys.contains { $0.hasSuffix("run-\(runs[1].id).csv") })
        #expect(folder.files.keys.contains { $0.hasSuffix("run-\(runs[2].id).csv") })
        #expect(try await export(.runs, since: later) == ["files": 1, "rows": 3])
        #expect(try await export(.timeline, since: first)["files"] == 3)
        // A day without a change is not written.
        try await store.change(runs[2].id, to: .cancelled, reason: nil, now: later, by: "anna")
        #expect(try await export(.runs, since: later + .seconds(86_400))["files"] == 0)
    }

    @Test func `a day of which reports were deleted keeps the file that it has`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1)
        let store: any AllRoles = scene.store
        let day = Timestamp(seconds: scene.clock.now.seconds / 86_400 * 86_400)
        let hours: [Int64] = [1, 5, 25, 49]
        let reports = hours.map { hour in
            let at = day + .seconds(hour * 3600)
            return FeedbackEvent(
                source: .installation("install-0", topic: PipelineScene.topic), kind: .converted, name: "played",
                id: (high: 0, low: hour), at: at, receivedAt: at)
        }
        #expect(try await store.recordFeedback(reports).allSatisfy { $0 == .recorded })
        let now = day + .seconds(50 * 3600)
        let folder = Folder()
        func export() async throws -> Int {
            try await ExportData(store: store, version: "1").write(
                ExportData.Question(.events, format: .csv), by: "anna", now: now
            ) { folder.open($0) }.files
        }
        #expect(try await export() == 3)
        let whole = folder.files
        #expect(whole.count == 3)
        #expect(try await store.removeFeedback(receivedBefore: day + .seconds(3 * 3600), now: now) == 1)
        #expect(try await export() == 2)
        #expect(folder.files == whole)
    }
}
