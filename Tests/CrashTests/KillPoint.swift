import Model
import TestSupport

/// The point at which a run is killed. The kill switch defines the system call of each case.
enum KillPoint: Hashable, CustomStringConvertible {
    enum Call: String, CaseIterable {
        case wal, unsynced, synced, send, received, asked, told, stopping, stopped, lifting, lifted
    }

    /// At the n-th call, counted from 1.
    case at(Call, Int)
    /// At the n-th call of a start that first recovers open leases.
    case recovering(Call, Int)
    /// At the n-th call, counted from the first message to the store that contains this text.
    case from(String, Call, Int)
    case after(milliseconds: Int)

    /// The environment for the preloaded kill switch. Empty if the clock decides.
    var environment: [String: String] {
        switch self {
        case .at(let call, let number), .recovering(let call, let number): Self.armed(call, number)
        case .from(let word, let call, let number): Self.armed(call, number).merging(["KILL_WORD": word]) { $1 }
        case .after: [:]
        }
    }

    /// The environment with which the process is stopped at this point until it is continued.
    var freezing: [String: String] { environment.merging(["KILL_SIGNAL": "stop"]) { $1 } }

    private static func armed(_ call: Call, _ number: Int) -> [String: String] {
        ["LD_PRELOAD": BuiltProgram.killSwitch, "KILL_SWITCH": "\(call.rawValue):\(number)"]
    }

    var description: String {
        switch self {
        case .at(let call, let number): "\(call.rawValue):\(number)"
        case .recovering(let call, let number): "recovery, \(call.rawValue):\(number)"
        case .from(let word, let call, let number): "\"\(word)\", \(call.rawValue):\(number)"
        case .after(let milliseconds): "after \(milliseconds) ms"
        }
    }

    /// The name of this kind of point in a summary.
    var kind: String {
        switch self {
        case .at(let call, _): call.rawValue
        case .recovering(let call, _): "recovery, \(call.rawValue)"
        case .from(_, let call, _): "chosen, \(call.rawValue)"
        case .after: "clock"
        }
    }

    static func inBurst(_ apart: ClosedRange<Int>, using jitter: inout SeededGenerator) -> KillPoint {
        .after(milliseconds: apart.lowerBound + Int(jitter.next() % UInt64(apart.count)))
    }

    /// Returns a random point. Small numbers are more likely than large ones, because much happens at the start.
    static func random(
        hasOpenLeases: Bool, isOnServer: Bool, using jitter: inout SeededGenerator
    ) -> KillPoint {
        if hasOpenLeases, jitter.next() % 3 == 0 {
            return isOnServer
                ? .recovering(.asked, Int(jitter.next() % 40) + 5) : .recovering(.wal, Int(jitter.next() % 12) + 1)
        }
        if isOnServer, jitter.next() % 2 == 0 {
            return .at(jitter.next() % 2 == 0 ? .asked : .told, 5 + spread(80, &jitter))
        }
        if isOnServer {
            switch jitter.next() % 3 {
            case 0: return .at(.send, spread(30, &jitter))
            case 1: return .at(.received, spread(30, &jitter))
            default: return .after(milliseconds: 100 + Int(jitter.next() % 1500))
            }
        }
        switch jitter.next() % 7 {
        case 0, 1: return .at(.wal, spread(120, &jitter))
        case 2: return .at(.unsynced, spread(8, &jitter))
        case 3: return .at(.synced, spread(8, &jitter))
        case 4: return .at(.send, spread(30, &jitter))
        case 5: return .at(.received, spread(30, &jitter))
        default: return .after(milliseconds: 100 + Int(jitter.next() % 1500))
        }
    }

    private static func spread(_ most: Int, _ jitter: inout SeededGenerator) -> Int {
        let share = Double(jitter.next() >> 11) / Double(1 << 53)
        return 1 + Int(Double(most) * share * share)
    }
}

/// A command of a run, and the point at which it is killed.
struct ScriptedKill {
    /// The command to run next. A person runs `approve` and `resume` if the run waits for that.
    enum Command: String {
        case run, resume, approve
    }

    var command = Command.run
    var point: KillPoint
}
