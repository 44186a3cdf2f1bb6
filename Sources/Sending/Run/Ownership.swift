import Foundation
import Logging
import Model
import Store

/// The name under which a process has a run, with what others need to see that it has ended:
/// `host:pid:start:namespace:boot`.
///
/// A store in WAL mode is used by processes of one machine only, so another boot means an ended process. Within one boot
/// a process can be looked up only from its own namespace of process ids; elsewhere its heartbeat alone tells.
package struct ProcessName: Hashable {
    private var host: String
    private var pid: Int32
    /// Ticks of the kernel since the boot, or 0 where the system does not tell.
    private var start: UInt64
    private var namespace: String
    private var boot: String

    package static let current = ProcessName(
        host: ProcessInfo.processInfo.hostName, pid: getpid(), start: ProcessEntry(getpid())?.start ?? 0,
        namespace: readNamespace(), boot: readBoot())

    package var text: String { "\(host):\(pid):\(start):\(namespace):\(boot)" }

    /// For a person: host and process id.
    package static func shown(_ owner: String) -> String {
        owner.split(separator: ":").prefix(2).joined(separator: ":")
    }

    /// Whether the process behind this name has ended for certain.
    package static func hasEnded(_ owner: String) -> Bool {
        guard let name = ProcessName(parsing: owner) else { return false }
        let here = ProcessName.current
        guard here.start > 0, !here.boot.isEmpty, !name.boot.isEmpty else { return false }
        if name.boot != here.boot { return true }
        guard name.namespace == here.namespace, !here.namespace.isEmpty else { return false }
        guard let entry = ProcessEntry(name.pid) else { return true }
        return entry.isDead || entry.start != name.start
    }

    private init(host: String, pid: Int32, start: UInt64, namespace: String, boot: String) {
        self.host = host
        self.pid = pid
        self.start = start
        self.namespace = namespace
        self.boot = boot
    }

    private init?(parsing text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, let pid = Int32(parts[1]), let start = UInt64(parts[2]) else { return nil }
        self.init(host: parts[0], pid: pid, start: start, namespace: parts[3], boot: parts[4])
    }

    /// The number in `pid:[4026531836]`.
    private static func readNamespace() -> String {
        let link = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/pid")) ?? ""
        return link.filter(\.isNumber)
    }

    private static func readBoot() -> String {
        let id = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
        return String(id.prefix(8))
    }
}

/// What the kernel says of a process; nil when there is none of that number.
private struct ProcessEntry {
    var start: UInt64
    /// Ended, and only waiting for its parent to take note.
    var isDead: Bool

    init?(_ pid: Int32) {
        // The name, in parentheses, may hold anything; state and start are the 3rd and the 22nd field (proc(5)).
        guard let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let end = stat.lastIndex(of: ")")
        else { return nil }
        let fields = stat[stat.index(after: end)...].split(separator: " ")
        guard fields.count > 19, let start = UInt64(fields[19]) else { return nil }
        self.start = start
        isDead = ["Z", "X"].contains(fields[0])
    }
}

/// Tells other processes that this one is alive and has the run, and hears from them.
struct Heartbeat: Sendable {
    static let interval: Duration = .seconds(1)

    let store: any SendingStore
    let run: Int64
    let owner: String
    let control: RunControl
    let clock: WallClock
    let logger: Logger

    /// Beats until `operation` returns. A state other than running, as somebody set it meanwhile, stops the run.
    func beat(while operation: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await operation()
                return true
            }
            group.addTask {
                try await beat()
                return false
            }
            while let isOver = try await group.next() {
                if isOver { group.cancelAll() }
            }
        }
    }

    private func beat() async throws {
        var watch = ClockWatch(store: store, clock: clock, actor: Actor(owner), logger: logger)
        var holds = ToldHolds()
        while !Task.isCancelled {
            if await watch.look() { control.changed.raise() }
            await clock.sleep(Self.interval)
            guard !Task.isCancelled else { return }
            let state: RunState
            do {
                state = try await store.heartbeat(run, owner: owner, now: clock.now())
            } catch is CancellationError {
                return
            }
            if state != .running { control.stop(.stateChanged(state)) }
            if holds.isNew(control.holds) { try await store.setHolds(control.holds, run: run, owner: owner) }
        }
    }
}

/// What the store knows of endpoints in trouble, so that it is told once.
private struct ToldHolds {
    private var told: [EndpointHold]?

    /// A next try that is a second off is none: the wall clock is steered.
    mutating func isNew(_ holds: [EndpointHold]) -> Bool {
        let isNear = zip(told ?? [], holds).allSatisfy { told, hold in
            var hold = hold
            let apart = hold.nextTryAt - told.nextTryAt
            if apart > .seconds(-2), apart < .seconds(2) { hold.nextTryAt = told.nextTryAt }
            return hold == told
        }
        if isNear, told?.count == holds.count { return false }
        told = holds
        return true
    }
}
