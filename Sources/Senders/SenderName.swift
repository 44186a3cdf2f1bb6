import APNs
import Foundation
import Logging
package import Model
import Platform
package import Store

/// The name under which a process owns a run: `host:pid:number:epoch`. Other processes look it up in the
/// ``SenderFolder``.
package struct SenderName: Hashable {
    package var host: String
    package var pid: Int32
    /// The number of the byte that the process holds in the lock file.
    package var number: Int64
    /// The epoch of the lock file.
    package var epoch: String

    package init(host: String, pid: Int32, number: Int64, epoch: String) {
        self.host = host
        self.pid = pid
        self.number = number
        self.epoch = epoch
    }

    package init?(parsing text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 4, let pid = Int32(parts[1]), let number = Int64(parts[2]), number >= LockFile.firstSender
        else { return nil }
        self.init(host: parts[0], pid: pid, number: number, epoch: parts[3])
    }

    package var text: String { "\(host):\(pid):\(number):\(epoch)" }
}

/// The name of a process in versions without locks: `host:pid:start:namespace:boot`.
///
/// If the boot differs, the process has ended. Within one boot a process can be looked up only from its own PID
/// namespace. From any other namespace its state is unknown.
package struct ProcessName: Hashable {
    private var pid: Int32
    /// Kernel ticks since the boot, or 0 if the system did not provide them.
    private var start: UInt64
    private var namespace: String
    private var boot: String

    /// Returns host and process id for a person, from a name of either form.
    package static func shown(_ owner: String) -> String {
        owner.split(separator: ":").prefix(2).joined(separator: ":")
    }

    /// Returns whether the name has this form and its process has certainly ended.
    package static func hasEnded(_ owner: String) -> Bool {
        guard let name = ProcessName(parsing: owner) else { return false }
        let (namespace, boot) = (readNamespace(), String(BootClock.bootID.prefix(8)))
        guard name.start > 0, !boot.isEmpty, !name.boot.isEmpty else { return false }
        if name.boot != boot { return true }
        guard name.namespace == namespace, !namespace.isEmpty else { return false }
        // If `/proc` does not show this process, it proves nothing about other processes.
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

    /// Returns the number of this process's PID namespace, from a link such as `pid:[4026531836]`.
    private static func readNamespace() -> String {
        let link = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/pid")) ?? ""
        return link.filter(\.isNumber)
    }
}

/// The kernel's entry of a process in `/proc`. It is `nil` if no process has this number, or `/proc` does not show it.
struct ProcessEntry {
    var start: UInt64
    /// The state letter of proc(5).
    private var state: Substring

    /// The entry of this process, even if `/proc` belongs to another PID namespace.
    static var current: ProcessEntry? { ProcessEntry("self") }

    init?(_ pid: Int32) { self.init("\(pid)") }

    private init?(_ name: String) {
        // The 2nd field, the name in parentheses, may contain any characters. State and start are the 3rd and the 22nd
        // field (proc(5)).
        guard let stat = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
            let end = stat.lastIndex(of: ")")
        else { return nil }
        let fields = stat[stat.index(after: end)...].split(separator: " ")
        guard fields.count > 19, let start = UInt64(fields[19]) else { return nil }
        self.start = start
        state = fields[0]
    }

    /// Whether the process has ended and only waits for its parent to collect it.
    var isDead: Bool { ["Z", "X"].contains(state) }
    /// Whether the process is stopped by a signal or a debugger.
    var isStopped: Bool { ["T", "t"].contains(state) }
}

/// Whether a sender is alive, as far as it can be determined.
package enum SenderLiveness: Hashable, Sendable {
    case held
    case gone
    /// Treated as alive: a run is never taken over on a guess.
    case unknown(String)
}

/// The data that a sender recorded about itself, for display only.
struct SenderRecord: Codable, Hashable {
    /// Kernel ticks since the boot. `nil` if the system did not provide them.
    var start: UInt64?
    /// The start in milliseconds since 1970.
    var beganAt: Int64
    var command: String
}

/// The process that owns a run, or the daemon, as shown to a person who waits for that process.
package struct RunHolder: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, CaseIterable {
        case running
        /// Stopped by a signal or a debugger. The process still owns the run.
        case stopped
        /// This process cannot see whether the owner runs.
        case unseen
        case ended
    }

    /// The host and process id.
    package let process: String
    package let state: State
    /// When the process became a sender. `nil` if it is unknown.
    package let since: Timestamp?
    /// The wait of a process whose store takes no outcomes. The process starts nothing new meanwhile.
    package let storeWait: StoreWait?
    private let command: String?
    private let liveness: SenderLiveness
    /// The store's last record of the sender, if nothing else is known.
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
        // The start also matches, so the entry is the owner's and not that of a later process with the same number.
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

    /// Returns a holder described by the store's record, for a sender of another machine that this process cannot see.
    package func told(by sender: SenderOnRecord?) -> RunHolder {
        guard let sender, case .unknown = liveness else { return self }
        return RunHolder(self, heard: sender)
    }

    /// The holder for a person: `web1:4711 (fanfare run, since 2026-11-21T05:39:55.000Z, running)`.
    package var summary: String {
        let program = heard?.facts.command ?? command.map { "fanfare \($0)" }
        let facts = [program, since.map { "since \($0.iso8601)" }, stateSummary]
        return "\(process) (\(facts.compactMap(\.self).joined(separator: ", ")))"
    }

    private var stateSummary: String {
        if let heard { return "on another machine, \(Self.summary(heard))" }
        if case .unknown(let reason) = liveness { return "treated as alive: \(reason)" }
        switch state {
        case .running: return "running"
        case .stopped: return "stopped: `kill -CONT \(process.split(separator: ":").last ?? "")` lets it continue"
        case .unseen: return "alive; this machine cannot tell whether it is running or stopped"
        case .ended: return "which has exited"
        }
    }

    private static func summary(_ heard: SenderOnRecord) -> String {
        switch heard.state {
        case .alive: "running"
        case .silent: "no heartbeat since \(heard.heardAt.iso8601)"
        case .gone: "dead since \(heard.heardAt.iso8601): other senders take over its work"
        }
    }
}
