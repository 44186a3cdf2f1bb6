import Foundation
import GRDBSQLite
import Model
import Store

/// A separate connection for one `audience_sql`. The file is opened for reading only. Statements see only the rows of
/// one app, in the views of ``AnalystView``, and are stopped after a time limit.
///
/// Used by one thread; closed when released.
final class AnalystConnection {
    /// The maximum size of a text. The definition of a run with many languages is nearly as large.
    private static let textMaxBytes: Int32 = 1_000_000
    /// The maximum size of a pattern of LIKE and GLOB. Their cost is the product of the sizes of the pattern and the
    /// text.
    private static let patternMaxBytes: Int32 = 100
    private static let longPattern = "LIKE or GLOB pattern too complex"
    /// The number of SQLite virtual machine steps between two checks of the time. Usually they take microseconds. Each
    /// step may call a function over a text of ``textMaxBytes``, which takes at most 100 ms.
    private static let stepsPerLook: Int32 = 100

    private let handle: OpaquePointer
    private let path: String
    private let audienceGuard: AudienceGuard
    private let deadline: AudienceDeadline

    /// - Parameters:
    ///   - address: see ``StoreReading/address(of:)``.
    ///   - app: the topic of the campaign. Statements see the rows of its app.
    ///   - isCancelled: whether the read that this connection serves is cancelled. It is called about every 50 ms, on
    ///     the thread of ``select(_:now:each:)``.
    init(
        address: String, app: String, timeLimit: Duration, isCancelled: @escaping () -> Bool = { false }
    ) throws {
        path = address
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(
            address, &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, nil)
        guard let opened, code == SQLITE_OK else {
            let reason = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "no memory"
            sqlite3_close_v2(opened)
            throw StoreError.cannotOpen(path: address, reason: reason)
        }
        handle = opened
        deadline = AudienceDeadline(limit: timeLimit, isCancelled: isCancelled)
        let nonce = UUID().uuidString
        audienceGuard = AudienceGuard(
            views: Set(AnalystView.all.map(\.name)),
            innerViews: Set(AnalystView.all.flatMap { ["\(nonce) \($0.name)", "\(nonce) own \($0.name)"] }))
        sqlite3_busy_timeout(handle, Int32(StoreLimits.busyTimeoutSeconds * 1000))
        sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Self.textMaxBytes)
        sqlite3_limit(handle, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, Self.patternMaxBytes)
        do {
            try AnalystFunctions.add(to: handle)
        } catch {
            throw StoreError.failed(path: path, reason: message)
        }
        try makeViews(nonce, app: app)
        // SQLite registers these functions at their first use, and the guard would refuse that.
        for function in AudienceGuard.tableFunctions { try execute("SELECT 1 FROM \(function)('[]')") }
        watch()
    }

    deinit {
        sqlite3_close_v2(handle)
    }

    /// Passes each selected device to `each`. Throws `StoreError.audienceSQL`, or the error of `each`.
    func select(_ sql: String, now: Timestamp, each: (Int64) throws -> Void) throws {
        let statement = try compile(sql)
        defer { sqlite3_finalize(statement) }
        try bind(now, to: statement)
        deadline.start()
        var row = 0
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_DONE: return
            case SQLITE_ROW: row += 1
            case SQLITE_INTERRUPT where deadline.wasCancelled: throw CancellationError()
            case SQLITE_INTERRUPT: throw StoreError.audienceSQL(.tooSlow(limit: deadline.limit))
            // SQLite has no code of its own for this fault.
            case SQLITE_ERROR where message == Self.longPattern:
                throw StoreError.audienceSQL(.patternTooLong(bytesMax: Int(Self.patternMaxBytes)))
            // Do not pass on SQLite's own message, because it quotes values of rows.
            case let code: throw StoreError.audienceSQL(.invalid(Self.unfit(code)))
            }
            guard sqlite3_column_type(statement, 0) == SQLITE_INTEGER else {
                throw StoreError.audienceSQL(.notAnID(row: row, kind: Self.kind(sqlite3_column_type(statement, 0))))
            }
            try each(sqlite3_column_int64(statement, 0))
        }
    }

    /// Creates three views for each public name. The first has the rows of all apps. The second selects this app's
    /// rows from the first. The third gives the second its public name.
    private func makeViews(_ nonce: String, app: String) throws {
        let run = "temp.\"\(nonce) run\""
        let topics = app.topics.sorted().map(Self.quoted).joined(separator: ", ")
        let isOwn = "topic IN (\(topics))"
        try execute("CREATE TEMP TABLE \"\(nonce) run\" (id INTEGER PRIMARY KEY) STRICT")
        try execute(
            "INSERT INTO \(run) SELECT id FROM main.run WHERE definition ->> '$.campaign.topic' IN (\(topics))")
        let hasOthers = try hasRow("SELECT 1 FROM main.topic WHERE name NOT IN (\(topics))")
        let ofDevice = "EXISTS (SELECT 1 FROM temp.\"\(nonce) device_view\" WHERE id = device_id AND \(isOwn))"
        let conditions = [
            "device_view": hasOthers ? isOwn : nil, "tag_view": hasOthers ? ofDevice : nil,
            "segment_view": hasOthers ? ofDevice : nil, "delivery_view": "run_id IN (SELECT id FROM \(run))",
            "run_view": "id IN (SELECT id FROM \(run))",
        ]
        for view in AnalystView.all {
            let (inner, own) = ("\"\(nonce) \(view.name)\"", "\"\(nonce) own \(view.name)\"")
            try execute("CREATE TEMP VIEW \(inner) AS \(view.select(from: "main."))")
            guard let condition = conditions[view.name, default: "false"] else {
                try execute("CREATE TEMP VIEW \(own) AS SELECT * FROM temp.\(inner)")
                continue
            }
            let confined = AnalystView.confined("temp.\(inner)", try columns(of: "temp.\(inner)"), to: condition)
            try execute("CREATE TEMP VIEW \(own) AS \(confined)")
        }
        for view in AnalystView.all {
            try execute("CREATE TEMP VIEW \(view.name) AS SELECT * FROM temp.\"\(nonce) own \(view.name)\"")
        }
    }

    private func columns(of view: String) throws -> [String] {
        try prepared("SELECT * FROM \(view)") { statement in
            (0..<sqlite3_column_count(statement)).map { String(cString: sqlite3_column_name(statement, $0)) }
        }
    }

    private func hasRow(_ sql: String) throws -> Bool {
        try prepared(sql) { sqlite3_step($0) == SQLITE_ROW }
    }

    private func prepared<Value>(_ sql: String, _ body: (OpaquePointer) -> Value) throws -> Value {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, let statement else {
            throw StoreError.failed(path: path, reason: message)
        }
        defer { sqlite3_finalize(statement) }
        return body(statement)
    }

    private static func quoted(_ text: String) -> String {
        var quoted = String.UnicodeScalarView("'".unicodeScalars)
        for scalar in text.unicodeScalars {
            if scalar == "'" { quoted.append(scalar) }
            quoted.append(scalar)
        }
        quoted.append("'")
        return String(quoted)
    }

    private func compile(_ sql: String) throws -> OpaquePointer {
        _ = try AudienceSQLText(sql)
        var statement: OpaquePointer?
        var hasMore = false
        let code = sql.withCString { text in
            var rest: UnsafePointer<CChar>?
            let code = sqlite3_prepare_v2(handle, text, -1, &statement, &rest)
            hasMore = rest.map { !AudienceSQLText.isBlank(String(cString: $0)) } ?? false
            return code
        }
        do {
            if let refused = audienceGuard.refusal { throw StoreError.audienceSQL(.refused(refused)) }
            guard code == SQLITE_OK else { throw StoreError.audienceSQL(.invalid(message)) }
            guard let statement, !hasMore else {
                throw StoreError.audienceSQL(hasMore ? .severalStatements : .invalid("it is empty"))
            }
            guard sqlite3_stmt_readonly(statement) != 0, sqlite3_stmt_isexplain(statement) == 0 else {
                throw StoreError.audienceSQL(.refused("something other than a SELECT"))
            }
            let columns = Int(sqlite3_column_count(statement))
            guard columns == 1 else { throw StoreError.audienceSQL(.columns(columns)) }
            return statement
        } catch {
            sqlite3_finalize(statement)
            throw error
        }
    }

    private func bind(_ now: Timestamp, to statement: OpaquePointer) throws {
        for index in 0..<sqlite3_bind_parameter_count(statement) {
            let name = sqlite3_bind_parameter_name(statement, index + 1).map { String(cString: $0) } ?? "?"
            guard name == ":now" else { throw StoreError.audienceSQL(.unknownParameter(name)) }
            sqlite3_bind_int64(statement, index + 1, now.milliseconds)
        }
    }

    private func watch() {
        sqlite3_set_authorizer(
            handle,
            { audienceGuard, action, first, second, _, context in
                guard let audienceGuard else { return SQLITE_DENY }
                return Unmanaged<AudienceGuard>.fromOpaque(audienceGuard).takeUnretainedValue().verdict(
                    action, first.map { String(cString: $0) } ?? "", second.map { String(cString: $0) } ?? "",
                    through: context.map { String(cString: $0) })
            }, Unmanaged.passUnretained(audienceGuard).toOpaque())
        sqlite3_progress_handler(
            handle, Self.stepsPerLook,
            { deadline in
                guard let deadline else { return 1 }
                return Unmanaged<AudienceDeadline>.fromOpaque(deadline).takeUnretainedValue().isOver ? 1 : 0
            }, Unmanaged.passUnretained(deadline).toOpaque())
    }

    private func execute(_ sql: String) throws {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
            throw StoreError.failed(path: path, reason: message)
        }
    }

    private var message: String { String(cString: sqlite3_errmsg(handle)) }

    private static func unfit(_ code: Int32) -> String {
        "a value in a row has the wrong type for its use (\(String(cString: sqlite3_errstr(code))))"
    }

    private static func kind(_ type: Int32) -> String {
        switch type {
        case SQLITE_NULL: "NULL"
        case SQLITE_FLOAT: "a fraction"
        case SQLITE_TEXT: "a text"
        default: "a blob"
        }
    }
}

/// A time limit on one statement. The statement also stops if its read is cancelled. The limit is a duration, so it
/// uses the monotonic clock.
final class AudienceDeadline {
    /// The interval between two checks for cancellation.
    private static let askEvery: Duration = .milliseconds(50)

    let limit: Duration
    private let isCancelled: () -> Bool
    private var end: Duration?
    private var askAt: Duration?
    private(set) var wasCancelled = false

    init(limit: Duration, isCancelled: @escaping () -> Bool) {
        self.limit = limit
        self.isCancelled = isCancelled
    }

    func start() {
        end = Self.now + limit
        askAt = Self.now + Self.askEvery
    }

    /// The time of the monotonic clock at the last tick of the kernel, a few milliseconds ago. It is read every few
    /// microseconds, and takes a fifth of the time of an exact one.
    private static var now: Duration {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return .nanoseconds(Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    var isOver: Bool {
        guard let end, let askAt else { return false }
        let now = Self.now
        if now >= askAt {
            self.askAt = now + Self.askEvery
            wasCancelled = isCancelled()
        }
        return wasCancelled || now >= end
    }
}
