import Model
import Store

extension DaemonStatus {
    /// How the daemon is, in one line.
    var line: String {
        var parts = ["\(campaigns.grouped) campaigns, \(scheduled.grouped) scheduled"]
        if let nextStart, let nextCampaign { parts.append("next \(nextCampaign) at \(nextStart.shown)") }
        if !running.isEmpty { parts.append(running.count == 1 ? "1 run" : "\(running.count) runs") }
        if !problems.isEmpty { parts.append(problems.count == 1 ? "1 file wrong" : "\(problems.count) files wrong") }
        return parts.joined(separator: "; ")
    }
}

extension DaemonHeartbeat {
    /// For `status`: one line for the daemon, and the problems of the files it reads.
    var text: String {
        let problems = status.problems.flatMap { problem in
            problem.messages.map { "  " + $0 }
                + (problem.keepsOld ? ["  \(problem.path): the version before holds"] : [])
        }
        return (["daemon \(ProcessName.shown(owner)): \(status.line)"] + problems).joined(separator: "\n")
    }

    /// The stable shape of `daemon` in `status --json`; keys are written in snake_case, times in ISO 8601 and UTC.
    struct JSON: Encodable {
        var process: String
        var startedAt: String
        var heartbeatAt: String
        var campaigns: Int
        var scheduled: Int
        var problems: [DaemonStatus.Problem]
        var readAt: String?
        /// The last time that nothing was wrong.
        var readWellAt: String?
        var nextCampaign: String?
        var nextStart: String?
        var running: [Int64]
    }

    var json: JSON {
        JSON(
            process: ProcessName.shown(owner), startedAt: startedAt.iso8601, heartbeatAt: heartbeatAt.iso8601,
            campaigns: status.campaigns, scheduled: status.scheduled, problems: status.problems,
            readAt: status.readAt?.iso8601, readWellAt: status.readWellAt?.iso8601, nextCampaign: status.nextCampaign,
            nextStart: status.nextStart?.iso8601, running: status.running)
    }
}
