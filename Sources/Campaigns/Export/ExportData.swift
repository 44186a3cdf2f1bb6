package import Model
import Sending
package import Store

/// Writes the tables for analysts, one file for each day and run.
package struct ExportData: Sendable {
    /// A file of the export while it is written.
    package protocol Target: AnyObject {
        func write(_ bytes: [UInt8]) throws
        /// Moves the file to its name.
        func finish() throws
    }

    /// What to export.
    package struct Question: Sendable {
        package var table: ExportTable
        package var format: ExportFormat
        /// Only reports received on the UTC day of this moment or later, and runs that were created or finished since
        /// then or have not finished. Days are whole, since a file of a day replaces an earlier one.
        package var since: Timestamp?
        /// Only this run; for tables with a file for each run.
        package var run: Int64?
        /// Whether the devices have their whole tokens.
        package var withTokens: Bool

        package init(
            _ table: ExportTable, format: ExportFormat, since: Timestamp? = nil, run: Int64? = nil,
            withTokens: Bool = false
        ) {
            self.table = table
            self.format = format
            self.since = since.map(ExportData.startOfDay)
            self.run = run
            self.withTokens = withTokens
        }
    }

    package struct Written: Sendable {
        package var files = 0
        package var rows = 0
        /// The runs that the export lacks, because they cannot be read.
        package var unreadable: [UnreadableRun] = []
    }

    private static let runsRead = 200
    private static let day: Duration = .seconds(86_400)

    private let store: any RunLog & OutcomeReader & DeviceRegistry & FeedbackLog & AuditLog
    private let version: String

    package init(
        store: any RunLog & OutcomeReader & DeviceRegistry & FeedbackLog & AuditLog, version: String
    ) {
        self.store = store
        self.version = version
    }

    /// Writes the files that the question asks for. An export of devices or of whole tokens is on record before the
    /// first row, also if it is not completed.
    ///
    /// - Parameter open: opens a file by its path below the export's folder, such as
    ///   `deliveries/day=2026-11-27/run-7.parquet`.
    package func write(
        _ question: Question, by actor: Actor, now: Timestamp, open: @escaping (String) throws -> any Target
    ) async throws -> Written {
        var writing = Writing(question: question, version: version, target: open)
        func record(_ what: String) async throws {
            guard question.table == .devices || question.withTokens else { return }
            let tokens = question.withTokens ? "with whole tokens" : "without tokens"
            try await store.recordEvent(
                kind: .devicesExported, run: nil, actor: actor, detail: "\(what) \(tokens)", now: now)
        }
        try await record("begins, \(question.table.rawValue)")
        switch question.table {
        case .devices: try await devices(&writing, now)
        case .events: try await events(&writing, now)
        case .runs: try await runs(&writing)
        case .deliveries, .timeline: try await perRun(&writing)
        }
        try await record(writing.written.rows.counted("device"))
        return writing.written
    }

    // The stores call a batch's closure on a thread of their own, one batch after the other, and this task waits for
    // them. So a file that is marked as unsafe below has one user at a time.

    private func devices(_ writing: inout Writing, _ now: Timestamp) async throws {
        nonisolated(unsafe) let file = try writing.file("devices")
        let withTokens = writing.question.withTokens
        _ = try await store.exportDevices(topic: nil, matching: .everyone, now: now) { devices in
            try file.append(.devices(devices, withTokens: withTokens))
        }
        try writing.finish(file)
    }

    private func events(_ writing: inout Writing, _ now: Timestamp) async throws {
        try await store.recordWaitingFeedback(tally: ServiceMetrics.reported)
        guard var start = try await firstDay(of: writing.question) else { return }
        while start <= now {
            let end = start + Self.day
            nonisolated(unsafe) var file: ExportFile?
            nonisolated(unsafe) let opening = writing
            let name = "events/day=\(Self.name(of: start))/part-0"
            try await store.feedback(receivedIn: start..<end) { events in
                let opened = try file ?? opening.file(name)
                file = opened
                try opened.append(.events(events))
            }
            if let file { try writing.finish(file) }
            start = end
        }
    }

    /// Returns the first day of which the question asks for reports and none were deleted, or `nil` if there are no
    /// reports. An earlier export may have written the whole of a day of which only a part is left.
    private func firstDay(of question: Question) async throws -> Timestamp? {
        guard let first = try await store.firstFeedback() else { return nil }
        let start = Self.startOfDay(max(first, question.since ?? first))
        guard let removal = try await store.feedbackRemoval() else { return start }
        return max(start, Self.startOfDay(removal.receivedUntil) + Self.day)
    }

    private static func startOfDay(_ moment: Timestamp) -> Timestamp {
        let day = day.components.seconds
        return Timestamp(seconds: moment.seconds / day * day)
    }

    private func runs(_ writing: inout Writing) async throws {
        var byDay: [String: [Run]] = [:]
        var wanted: Set<String> = []
        writing.written.unreadable = try await forEachRun(writing.question) { run, isWanted in
            let day = Self.name(of: run.createdAt)
            byDay[day, default: []].append(run)
            if isWanted { wanted.insert(day) }
        }
        for (day, runs) in byDay.sorted(by: { $0.key < $1.key }) where wanted.contains(day) {
            let file = try writing.file("runs/day=\(day)/part-0")
            try file.append(.runs(runs.sorted { $0.id < $1.id }))
            try writing.finish(file)
        }
    }

    private func perRun(_ writing: inout Writing) async throws {
        var runs: [Run] = []
        writing.written.unreadable = try await forEachRun(writing.question) { run, isWanted in
            if isWanted { runs.append(run) }
        }
        for run in runs.sorted(by: { $0.id < $1.id }) {
            let name = "\(writing.question.table.rawValue)/day=\(Self.name(of: run.createdAt))/run-\(run.id)"
            if writing.question.table == .timeline {
                let file = try writing.file(name)
                try file.append(.timeline(try await ReadTimeline(store: store).timeline(of: run), of: run))
                try writing.finish(file)
                continue
            }
            // The outcomes of an old run may be pruned: then it has no rows any more.
            guard try await ReportRun.prunedAt(run, in: store) == nil else { continue }
            nonisolated(unsafe) let file = try writing.file(name)
            _ = try await store.outcomes(run: run.id) { try file.append(.deliveries($0, of: run)) }
            try writing.finish(file)
        }
    }

    /// Calls `body` with each run, and with whether the question asks for it. Returns the runs that cannot be read, as
    /// far as they were created since the moment that the question names.
    private func forEachRun(
        _ question: Question, _ body: (Run, _ isWanted: Bool) -> Void
    ) async throws -> [UnreadableRun] {
        if let number = question.run {
            guard let run = try await store.run(number) else {
                throw Failure(.notFound, "no run \(number) in the store; `fanfare status` lists the runs")
            }
            body(run, true)
            return []
        }
        let unreadable = try await forEachRun(RunFilter(createdFrom: question.since)) { body($0, true) }
        if let since = question.since {
            _ = try await forEachRun(RunFilter(createdBefore: since)) { run in
                body(run, !run.state.isFinal || run.finishedAt.map { $0 >= since } ?? false)
            }
        }
        return unreadable
    }

    private func forEachRun(_ filter: RunFilter, _ body: (Run) -> Void) async throws -> [UnreadableRun] {
        var unreadable: [UnreadableRun] = []
        var before: Int64?
        while true {
            let found = try await store.listedRuns(filter, before: before, limit: Self.runsRead)
            found.readable.forEach(body)
            unreadable += found.unreadable
            guard found.count == Self.runsRead, let last = found.last?.id else { return unreadable }
            before = last
        }
    }

    /// Returns the day of a moment in UTC, such as `2026-11-27`.
    private static func name(of moment: Timestamp) -> String { String(moment.iso8601.prefix(10)) }

    private struct Writing {
        let question: Question
        let version: String
        let target: (String) throws -> any Target
        var written = Written()

        func file(_ name: String) throws -> ExportFile {
            try ExportFile(
                question.table, question.format, version: version,
                target: target("\(name).\(question.format.rawValue)"))
        }

        mutating func finish(_ file: ExportFile) throws {
            try file.finish()
            written.files += 1
            written.rows += file.rows
        }
    }
}
