import Campaigns
import Model
import Sending
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

}
