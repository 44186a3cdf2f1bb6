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

}
