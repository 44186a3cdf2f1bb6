package import Model
import Platform

/// The errors of the store, with the facts of the case. `description` is one sentence for the person at the terminal,
/// and never holds a whole token.
package enum StoreError: Error, Hashable, Sendable {
    case newerVersion(path: String, found: Int, known: Int)
    /// The store was opened for reading only, so it cannot be migrated.
    case olderVersion(path: String, found: Int, known: Int)
    case notADatabase(path: String)
    /// A SQLite file of another program, or an empty file that may not be written.
    case notAStore(path: String)
    /// There is no file, or an empty one, and this command must not create a store.
    case noStore(path: String, isEmptyFile: Bool)
    /// A folder, a device, a socket or a pipe.
    case notAFile(path: String)
    /// The target of a backup is an existing file or folder.
    case backupExists(path: String)
    /// The target of a backup cannot be written.
    case cannotMake(path: String, reason: String)
    case noFolder(path: String)
    case cannotOpen(path: String, reason: String)
    case diskFull(path: String)
    /// No space for a sender's journal, whose file is at `path`.
    case journalFull(path: String)
    case readOnly(path: String)
    /// Its file system is mounted read-only. The same command works after a person mounts it for writing.
    case readOnlyFileSystem(path: String)
    /// The process has no file descriptor or no memory left.
    case exhausted(path: String, reason: String)
    /// The file was moved, replaced or deleted while it was open.
    case displaced(path: String)
    /// Another process held the write lock for longer than the store waits for it.
    case busy(path: String)
    case corrupt(path: String, reason: String)
    /// The row of one run cannot be read; all other rows can.
    case unreadableRun(run: Int64, reason: String)
    /// The disk, or a network file system, failed during the operation `what`.
    case inputOutput(path: String, what: String)
    /// The file was read without locks, and another process began to write meanwhile. The data that was read may be
    /// wrong.
    case changedMeanwhile(path: String)
    /// The store was moved to another place, and the copy there was verified.
    case moved(path: String, to: String, at: Timestamp)
    /// The store is being copied to another place.
    case moving(path: String, to: String, since: Timestamp)
    /// The move was given up while a process carried it out.
    case moveGivenUp(path: String, to: String)
    /// A copy that is not whole yet.
    case arriving(path: String, from: String)
    /// A sender is active, or has not released what it was sending.
    case inUse(path: String, reason: String)
    /// A row of another store holds a value that this store cannot keep.
    case notStorable(path: String, row: String, reason: String)
    /// The server does not respond, or is not ready. Nothing of the call was recorded.
    case unreachable(path: String, reason: String)
    /// The server refuses this user, or this operation. Nothing of the call was recorded.
    case accessRefused(path: String, reason: String)
    /// The server refuses the login of a process that it let in before, for example because the password was just
    /// changed. Nothing of the call was recorded.
    case accessWithdrawn(path: String, reason: String)
    /// The connection to the server was lost while the call was being recorded. The call may or may not be recorded.
    case outcomeUnknown(path: String, reason: String)
    /// Any other fault of the database, with its own text and code.
    case failed(path: String, reason: String)

    case noSuchSegment(String, suggestion: String?)
    case unsuitableValue(field: String, value: String)
    case audienceTooLarge
    case audienceSQL(AudienceSQLFault)
    /// The names of the cycle, from the segment back to itself.
    case segmentCycle([String])
    case segmentsTooDeep([String])
    /// Other segments have names that differ from this one only in how their letters are composed.
    case segmentIsAmbiguous(String)
    /// Members cannot be imported into a dynamic segment.
    case segmentIsDynamic(String)
    /// A segment with members cannot be defined by an expression.
    case segmentIsStatic(String)
    /// A segment that something names cannot be removed.
    case segmentIsUsed(String, by: [String])
    case noSuchDevice(Int64)
    case deviceOfOtherTopic(Int64, topic: String, expected: String)
    case occurrenceTaken(campaign: String, occurrence: String, run: Int64)
    case noSuchRun(Int64)
    /// Another owner has the run, or it has no owner.
    case lostClaim(run: Int64, holder: String?)
    /// The sender had no heartbeat for too long: other senders have taken its work over.
    case senderLost(String)
    case runIsOver(run: Int64, state: RunState)
    case notFinished(run: Int64, pending: Int, leased: Int)
    case illegalChange(run: Int64, from: RunState, to: RunState)
    /// The run is in another state than the one that the person who changes it has seen.
    case runChanged(run: Int64)
    /// The run's next stage waits for ``RunLog/approveStage(of:stage:by:now:)``.
    case awaitsApproval(run: Int64)
    /// See ``RunHalt/grown``.
    case grownBeyondApproval(run: Int64)
    /// A seed stage, from 1, names more devices than people can know, or more than may be seeds of `audience` devices.
    /// `audience` is `nil` if the number is too large for any audience.
    case tooManySeeds(stage: Int, devices: Int, audience: Int?)
    /// The run's outcomes by device were deleted; its report is left.
    case outcomesPruned(run: Int64, at: Timestamp)
    /// An access token has this name, or had it before it was revoked.
    case accessTokenExists(name: String)
    /// The approval request can no longer be signed.
    case approvalClosed(ApprovalRequest.State)
    case noSuchAccessToken(String)
    /// The change would leave no access token of an admin of all apps.
    case lastAdmin(name: String)
}

extension StoreError {
    /// Whether the error may pass without help, or after a person has freed space. The same call may then succeed.
    package var isPassing: Bool {
        switch self {
        // An input or output error may pass, because an exhausted quota looks like one. A sender that waits loses no
        // responses: they are in its journal.
        case .busy, .diskFull, .journalFull, .inputOutput, .changedMeanwhile, .unreachable, .outcomeUnknown,
            .accessWithdrawn, .readOnlyFileSystem, .exhausted:
            true
        default: false
        }
    }
}

extension StoreError {
    /// Whether the campaign's audience cannot be counted with its present files and segments. Only a change of these
    /// helps, and no other campaign is concerned. A query that was too slow may be faster later.
    package var isAboutAudience: Bool {
        switch self {
        case .audienceSQL(.tooSlow): false
        case .noSuchSegment, .unsuitableValue, .audienceTooLarge, .audienceSQL, .segmentCycle, .segmentsTooDeep,
            .segmentIsAmbiguous, .tooManySeeds:
            true
        default: false
        }
    }

    /// Returns the refusal to migrate while a sender of the older version is active: it would continue by its own
    /// rules.
    package static func migrating(_ path: String, under sender: String) -> StoreError {
        let name = sender.split(separator: ":").prefix(2).joined(separator: ":")
        return .inUse(
            path: path,
            reason: "\(name) sends from the store with an older version; stop that sender before the store is upgraded")
    }

    /// Returns the refusal of a process that finds another process at the upgrade.
    package static func upgrading(_ path: String) -> StoreError {
        .inUse(path: path, reason: "another process is upgrading it; run the same command again after that")
    }
}

extension StoreError {
    /// Whether another program is at work on the store. Such an error says nothing about the store's contents.
    package var isAnotherProgram: Bool {
        switch self {
        case .busy, .changedMeanwhile: true
        default: false
        }
    }
}

extension StoreError {
    /// Whether the description quotes the database or names its place, which is for administrators only.
    package var quotesDatabase: Bool {
        switch self {
        case .cannotOpen, .corrupt, .notADatabase, .notAStore, .inputOutput, .unreachable, .accessRefused,
            .accessWithdrawn, .outcomeUnknown, .failed:
            true
        default: false
        }
    }
}

extension StoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .newerVersion(let path, let found, let known):
            "\(path) was written by a newer Fanfare (store version \(found), this Fanfare supports \(known)); use the "
                + "newer Fanfare"
        case .olderVersion(let path, let found, let known):
            "\(path) was written by an older Fanfare (store version \(found), this Fanfare uses \(known)); start "
                + "`fanfare serve` with it, or run `fanfare backup FILE` once, which upgrades the store and keeps a "
                + "copy"
        case .notADatabase(let path): "\(path) is not a SQLite database; give the path of a Fanfare store"
        case .notAStore(let path):
            "\(path) holds no Fanfare store: it belongs to another program, or was copied in use without its "
                + "-wal file; name another file, or use a copy that `fanfare backup` created"
        case .noStore(let path, let isEmptyFile):
            (isEmptyFile ? "\(path) is an empty file, not a store" : "there is no store at \(path)")
                + "; correct the \(StoreAddress(path).isURL ? "URL" : "path"), or create one there with `fanfare "
                + "devices import FILE`"
        case .notAFile(let path): "\(path) is not a file; give the path of a Fanfare store"
        case .backupExists(let path):
            "\(path) already exists; give another name, or --force to replace a backup"
        case .cannotMake(let path, let reason): "cannot write \(path): \(reason); name another path"
        case .noFolder(let path): "the folder of \(path) does not exist; create it or change `store`"
        case .cannotOpen(let path, let reason): "cannot open the store \(path): \(reason)"
        case .diskFull(let path):
            "no free space for the store \(path)" + (DiskSpace(around: path).map { ": \($0.summary)" } ?? "")
                + "; free disk space there first, then run the same command again"
        case .journalFull(let path):
            "no free space for the journal of requests \(path)"
                + (DiskSpace(around: path).map { ": \($0.summary)" } ?? "")
                + "; free disk space there, then sending continues"
        case .readOnly(let path):
            "the store \(path) cannot be written to; check the owner and permissions of the file and its folder"
        case .readOnlyFileSystem(let path):
            "the store \(path) is on a file system that is mounted read-only, so only read commands work; remount "
                + "it for writing (dmesg shows why it is read-only), then run the same command again"
        case .exhausted(let path, let reason):
            "the store \(path) cannot be used: \(reason); raise the limit (LimitNOFILE=, LimitAS=, ulimit), or run the "
                + "same command again"
        case .displaced(let path):
            "the store \(path) was moved, replaced or deleted while it was in use; nothing more is sent. Put it back, or "
                + "`fanfare restore` a backup, then run the same command again"
        case .busy(let path): "the store \(path) is locked by another process; run the same command again"
        case .inputOutput(let path, let what):
            "the store \(path) had a disk or file system error, \(what); check the kernel's log (dmesg)"
        case .changedMeanwhile(let path):
            "another process started writing to the store \(path) while it was being read; run the same command again"
        case .corrupt(let path, let reason): "the store \(path) is damaged: \(reason); restore it from a backup"
        case .unreadableRun(let run, let reason):
            "run \(run) cannot be read, and is skipped: \(reason); a newer Fanfare may have written it: use that "
                + "version, or restore the store from a backup"
        case .moved(let path, let to, let moment):
            "\(path): this store was moved to \(to) on \(moment.iso8601.prefix(10)); put `store: \(to)` into the "
                + "configuration"
        case .moving(let path, let to, let moment):
            "\(path): this store has been moving to \(to) since \(moment.iso8601); finish the move with `fanfare move "
                + "--to \(to)`, or abandon it with `fanfare move --give-up`"
        case .moveGivenUp(let path, let to):
            "the move of \(path) to \(to) has been abandoned; remove the copy there, and name a new address to "
                + "move again"
        case .arriving(let path, let from):
            "\(path) is an incomplete copy of \(from); finish the move with `fanfare move --to \(path)` where "
                + "`store: \(from)` is in the configuration"
        case .inUse(let path, let reason): "the store \(path) is in use: \(reason)"
        case .notStorable(let path, let row, let reason): "\(row) cannot be stored in \(path): \(reason)"
        case .unreachable(_, let reason), .accessRefused(_, let reason), .accessWithdrawn(_, let reason),
            .outcomeUnknown(_, let reason):
            reason
        case .failed(let path, let reason): "the store \(path) reported an error: \(reason)"
        case .noSuchSegment(let name, let suggestion):
            "no segment \"\(name)\"; " + (suggestion.map { "did you mean \"\($0)\"?" } ?? "import it first")
        case .unsuitableValue(let field, let value): "\(field) cannot be compared with \(value)"
        case .audienceTooLarge: "the audience expression is too large; move long lists into a segment"
        case .audienceSQL(let fault): "audience_sql: \(fault)"
        case .segmentCycle(let names):
            "segment \"\(names.first ?? "")\" would contain itself: \(names.joined(separator: " -> ")); "
                + "leave one of them out"
        case .segmentsTooDeep(let names):
            "segments are nested too deeply: \(names.joined(separator: " -> ")); write out the inner segments"
        case .segmentIsAmbiguous(let name):
            "segment \"\(name)\" and another one have names that look the same but differ in their bytes; "
                + "remove one of them, or use one spelling everywhere"
        case .segmentIsDynamic(let name):
            "segment \"\(name)\" is defined by an expression and accepts no members; import under another name"
        case .segmentIsStatic(let name):
            "segment \"\(name)\" holds imported members; define the expression under another name"
        case .segmentIsUsed(let name, let users):
            "segment \"\(name)\" is not removed, because it is used by \(users.joined(separator: ", ")); "
                + "remove it there first"
        case .noSuchDevice(let device): "no device \(device)"
        case .deviceOfOtherTopic(let device, let topic, let expected):
            "device \(device) is registered for \(topic), but the campaign is for \(expected); choose a device of that "
                + "topic"
        case .occurrenceTaken(let campaign, let occurrence, let run):
            "\(campaign) already has run \(run) for the occurrence \(occurrence); give another --occurrence"
        case .noSuchRun(let run): "no run \(run)"
        case .lostClaim(let run, let holder):
            "this process no longer owns run \(run)" + (holder.map { "; \($0) owns it" } ?? "; the run has no owner")
        case .senderLost(let name):
            "\(name.split(separator: ":").prefix(2).joined(separator: ":")) had no heartbeat for so long that other "
                + "senders took over its deliveries; it has stopped. Run the same command again"
        case .runIsOver(let run, let state): "run \(run) is \(state.rawValue); nothing remains to be sent"
        case .notFinished(let run, let pending, let leased):
            "run \(run) is not finished: \(pending.counted("delivery is", "deliveries are")) pending and \(leased) leased"
        case .outcomesPruned(let run, let moment):
            "the outcomes of run \(run) by device were pruned on \(moment.iso8601.prefix(10)); its report remains: "
                + "`fanfare report \(run)`"
        case .approvalClosed(let state):
            "the plan no longer waits for signatures: it is \(state.rawValue); `fanfare plan CAMPAIGN --for-approval` "
                + "requests approval again"
        case .accessTokenExists(let name):
            "an access token \"\(name)\" exists or existed, and names cannot be reused; give another name"
        case .runChanged(let run): "run \(run) has changed since you read it; reload it before you change it"
        case .lastAdmin(let name):
            "\(name) is the last admin of all apps, and at least one person must be able to manage people; give another person the "
                + "role admin first"
        case .noSuchAccessToken(let text): "no access token \"\(text)\"; `fanfare tokens list` shows them"
        case .awaitsApproval(let run):
            "run \(run) waits for the approval of its next stage; `fanfare approve \(run) --stage N` approves it, "
                + "`fanfare cancel \(run)` ends the run"
        case .grownBeyondApproval(let run):
            "run \(run) would not reach the devices that were approved: their number or selection has changed; "
                + "`fanfare cancel \(run)` ends it, and another run can be approved"
        case .tooManySeeds(let stage, _, nil):
            "stage \(stage) is for seeds, and its expression names more than \(Stage.seedsMax.grouped) devices; name "
                + "devices of people you know, or use `share`"
        case .tooManySeeds(let stage, let devices, let audience?):
            "stage \(stage) is for seeds, and selects \(devices.grouped) of the \(audience.grouped) devices that the "
                + "run is for, more than \((Stage.seedsShareMax * 100).percentText); name devices of people you know, or "
                + "write a share"
        case .illegalChange(let run, let from, let to):
            "run \(run) is \(from.rawValue) and cannot become \(to.rawValue)"
        }
    }
}

/// The reason why an `audience_sql` was refused. Each case names its subject.
package enum AudienceSQLFault: Hashable, Sendable {
    /// It does, or reads, something that is not allowed: `reading device.token`, `the function random()`.
    case refused(String)
    /// The database cannot process it. The text is the database's own message.
    case invalid(String)
    case severalStatements
    case columns(Int)
    /// A row, from 1, that is not an integer.
    case notAnID(row: Int, kind: String)
    /// A parameter other than `:now`.
    case unknownParameter(String)
    case tooSlow(limit: Duration)
    /// A pattern of `LIKE` or `GLOB`.
    case patternTooLong(bytesMax: Int)
    case tooMany(limit: Int)
    /// The setup that the database lacks for the query.
    case notSetUp(String)
}

extension AudienceSQLFault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .refused(let what):
            "\(what) is not allowed; write one SELECT of device ids that reads only \(Self.views)"
        case .invalid(let reason): "\(reason); it may read \(Self.views)"
        case .severalStatements: "more than one statement; write one SELECT of device ids"
        case .columns(let count): "it selects \(count) columns; select only the device ids"
        case .notAnID(let row, let kind): "row \(row) is \(kind), not a device id; select `id` or `device_id`"
        case .unknownParameter(let name):
            "the parameter \(name) has no value; use only :now, in milliseconds"
        case .tooSlow(let limit):
            "it took longer than \(WrittenDuration.text(limit)); simplify the query, or import a segment"
        case .patternTooLong(let bytesMax):
            "a pattern of LIKE or GLOB has more than \(bytesMax) bytes, which is the limit; shorten the pattern, or "
                + "search for a text with instr(column, 'text') > 0"
        case .tooMany(let limit): "it selects more than \(limit) device ids; write the audience as an expression"
        case .notSetUp(let reason):
            "\(reason); ask an administrator of the database to run the SQL that `fanfare install --postgres` prints"
        }
    }

    private static let views = AnalystViewNames.all.joined(separator: ", ")
}

/// The views that an `audience_sql` may read, in every store.
package enum AnalystViewNames {
    package static let all = ["device_view", "tag_view", "segment_view", "delivery_view", "run_view"]
}

extension RunHalt {
    /// Throws for a halt that a person's `resume` does not end.
    package func requireResumable(_ run: Int64) throws {
        switch self {
        case .approval: throw StoreError.awaitsApproval(run: run)
        case .grown: throw StoreError.grownBeyondApproval(run: run)
        case .unreachable, .credential, .breaker, .late, .stage, .volume, .restored, .unsuccessful: break
        }
    }
}
