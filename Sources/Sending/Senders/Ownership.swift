import APNs
import Foundation
import Logging
package import Model
package import Store

/// The name under which a process has a run, for others to look up in the ``SenderFolder``: `host:pid:number:epoch`.
struct SenderName: Hashable {
    var host: String
    var pid: Int32
    /// Of the byte it holds in the lock file.
    var number: Int64
    /// Of the lock file.
    var epoch: String

    init(host: String, pid: Int32, number: Int64, epoch: String) {
        self.host = host
        self.pid = pid
        self.number = number
        self.epoch = epoch
    }

    init?(parsing text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 4, let pid = Int32(parts[1]), let number = Int64(parts[2]), number >= LockFile.firstSender
        else { return nil }
        self.init(host: parts[0], pid: pid, number: number, epoch: parts[3])
    }

    var text: String { "\(host):\(pid):\(number):\(epoch)" }
}

/// The name that a process had in versions without locks: `host:pid:start:namespace:boot`.
///
/// Another boot means an ended process. Within one boot a process can be looked up only from its own namespace of
/// process ids; elsewhere nothing is known of it.
package struct ProcessName: Hashable {
    private var pid: Int32
    /// Ticks of the kernel since the boot, or 0 where the system did not tell.
    private var start: UInt64
    private var namespace: String
    private var boot: String

    /// For a person: host and process id, of a name of either form.
    package static func shown(_ owner: String) -> String {
        owner.split(separator: ":").prefix(2).joined(separator: ":")
    }

    /// Whether the process behind such a name has ended for certain.
    package static func hasEnded(_ owner: String) -> Bool {
        guard let name = ProcessName(parsing: owner) else { return false }
        let (namespace, boot) = (readNamespace(), String(BootClock.bootID.prefix(8)))
        guard name.start > 0, !boot.isEmpty, !name.boot.isEmpty else { return false }
        if name.boot != boot { return true }
        guard name.namespace == namespace, !namespace.isEmpty else { return false }
        // Without itself to be seen, nobody is.
        guard ProcessEntry.current != nil else { return false }
        guard let entry = ProcessEntry(name.pid) else { return true }
        return entry.isDead || entry.start != name.start
    }

    private init?(parsing text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, let pid = Int32(parts[1]), let start = UInt64(parts[2]) else { return nil }
        self.pid = pid
        self.start = start
        namespace = parts[3]
        boot = parts[4]
    }

    /// The number in `pid:[4026531836]`.
    private static func readNamespace() -> String {
        let link = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/pid")) ?? ""
        return link.filter(\.isNumber)
    }
}

/// What the kernel says of a process; nil when there is none of that number, or it does not show it.
struct ProcessEntry {
    var start: UInt64
    /// The letter of proc(5).
    private var state: Substring

    /// Of this process, also where `/proc` counts processes in another way than it does itself.
    static var current: ProcessEntry? { ProcessEntry("self") }

    init?(_ pid: Int32) { self.init("\(pid)") }

    private init?(_ name: String) {
        // The name, in parentheses, may hold anything; state and start are the 3rd and the 22nd field (proc(5)).
        guard let stat = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
            let end = stat.lastIndex(of: ")")
        else { return nil }
        let fields = stat[stat.index(after: end)...].split(separator: " ")
        guard fields.count > 19, let start = UInt64(fields[19]) else { return nil }
        self.start = start
        state = fields[0]
    }

    /// Ended, and only waiting for its parent to take note.
    var isDead: Bool { ["Z", "X"].contains(state) }
    /// By a signal, or by a debugger.
    var isStopped: Bool { ["T", "t"].contains(state) }
}

/// Whether a sender lives, as far as it can be told.
package enum SenderLiveness: Hashable, Sendable {
    case held
    case gone
    /// Counts as alive: nobody's run is taken on a guess.
    case unknown(String)
}

/// What a sender wrote down about itself, for display only.
struct SenderRecord: Codable, Hashable {
    /// Ticks of the kernel since the boot; nil where the system did not tell.
    var start: UInt64?
    /// In milliseconds since 1970.
    var beganAt: Int64
    var command: String
}

/// The process that has a run, or the daemon's post, as a person who waits for it is told.
package struct RunHolder: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, CaseIterable {
        case running
        /// By a signal, or by a debugger: it has the run all the same.
        case stopped
        /// It cannot be seen from here whether it runs.
        case unseen
        case ended
    }

    /// Host and process id.
    package let process: String
    package let state: State
    /// When it became a sender; nil where it is not known.
    package let since: Timestamp?
    /// The store does not take what it has to record, and it starts nothing new.
    package let storeWait: StoreWait?
    private let command: String?
    private let liveness: SenderLiveness
    /// What the store heard of it last, where that is all there is to know.
    private let heard: SenderOnRecord?

    init(_ owner: String, _ liveness: SenderLiveness, _ record: SenderRecord?, _ storeWait: StoreWait? = nil) {
        process = ProcessName.shown(owner)
        self.liveness = liveness
        heard = nil
        since = record.map { Timestamp(milliseconds: $0.beganAt) }
        command = record?.command
        self.storeWait = liveness == .gone ? nil : storeWait
        guard liveness != .gone else {
            state = .ended
            return
        }
        // A process of that number and start may be seen here only where it is the one that was meant.
        let entry = SenderName(parsing: owner).flatMap { ProcessEntry($0.pid) }
        guard let entry, entry.start == record?.start else {
            state = .unseen
            return
        }
        state = entry.isStopped ? .stopped : .running
    }

    private init(_ known: RunHolder, heard: SenderOnRecord) {
        process = known.process
        liveness = known.liveness
        command = nil
        since = heard.since
        storeWait = nil
        self.heard = heard
        state =
            switch heard.state {
            case .alive: .running
            case .silent: .unseen
            case .gone: .ended
            }
    }

    /// Of one that cannot be seen from here, a sender of another machine: as the store has heard of it.
    package func told(by sender: SenderOnRecord?) -> RunHolder {
        guard let sender, case .unknown = liveness else { return self }
        return RunHolder(self, heard: sender)
    }

    /// `web1:4711 (fanfare run, since 2026-11-21T05:39:55.000Z, running)`.
    package var words: String {
        let program = heard?.facts.command ?? command.map { "fanfare \($0)" }
        let facts = [program, since.map { "since \($0.iso8601)" }, stateWords]
        return "\(process) (\(facts.compactMap(\.self).joined(separator: ", ")))"
    }

    private var stateWords: String {
        if let heard { return "on another machine, \(Self.words(heard))" }
        if case .unknown(let reason) = liveness { return "which counts as alive: \(reason)" }
        switch state {
        case .running: return "running"
        case .stopped: return "stopped: `kill -CONT \(process.split(separator: ":").last ?? "")` lets it go on"
        case .unseen: return "alive; whether it runs or is stopped cannot be seen from here"
        case .ended: return "which has ended"
        }
    }

    private static func words(_ heard: SenderOnRecord) -> String {
        switch heard.state {
        case .alive: "running"
        case .silent: "not heard of since \(heard.heardAt.iso8601)"
        case .gone: "gone since \(heard.heardAt.iso8601): others take its work over"
        }
    }
}
