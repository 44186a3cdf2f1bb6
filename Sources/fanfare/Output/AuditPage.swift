import Model
import Store

/// The record of what was done, a few lines an event.
enum AuditPage {
    static func lines(_ event: StoreEvent) -> [String] {
        let run = event.run.map { "run \($0) \(event.campaign ?? "")" }
        let what = [event.kind, run, event.detail].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: "  ")
        let indent = String(repeating: " ", count: 26)
        var lines = [
            "\(event.at.iso8601.padded(to: 26))\(what)",
            "\(indent)by \(event.actor.name), \(event.actor.origin.rawValue)",
        ]
        if let command = event.actor.command { lines.append("\(indent)$ \(command)") }
        for (path, hash) in event.files.sorted(by: { $0.key < $1.key }) { lines.append("\(indent)\(hash)  \(path)") }
        return lines
    }

    /// The stable shape of each event of `audit --json`.
    struct Event: Encodable {
        var at, kind, actor, detail, origin: String
        var run: Int64?
        var campaign: String?
        var uid: Int64?
        var user: String?
        var command: String?
        /// SHA-256 by path.
        var files: [String: String]

        init(_ event: StoreEvent) {
            at = event.at.iso8601
            kind = event.kind
            actor = event.actor.name
            detail = event.detail
            origin = event.actor.origin.rawValue
            run = event.run
            campaign = event.campaign
            if case .account(let uid, let user) = event.actor.authentication {
                self.uid = uid
                self.user = user
            }
            command = event.actor.command
            files = event.files
        }
    }
}
