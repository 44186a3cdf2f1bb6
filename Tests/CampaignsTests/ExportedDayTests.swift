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
