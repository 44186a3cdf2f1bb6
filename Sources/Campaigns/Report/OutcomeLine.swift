package import Model
import Sending
package import Store

/// A delivery of a run as a line of CSV, for analysts.
package struct OutcomeLine: Sendable {
    package static let columns = [
        "device", "installation_id", "token", "environment", "locale", "state", "status", "reason", "attempts",
        "settled_at", "apns_id",
    ]

    private let run: Run
    private let namespace: (high: UInt64, low: UInt64)

    package init(run: Run, namespace: (high: UInt64, low: UInt64)) {
        self.run = run
        self.namespace = namespace
    }

    package func line(_ row: OutcomeRow) -> String {
        let wasSent = row.attempts > 0
        return CSVLine.text([
            "\(row.device)", row.installationID ?? "", row.tokenEnd ?? "", row.environment.rawValue, row.locale ?? "",
            row.state.name, row.status > 0 ? "\(row.status)" : "", row.reason ?? "", "\(row.attempts)",
            row.settledAt?.iso8601 ?? "",
            wasSent
                ? DeliveryID.text(namespace: namespace, run: run.id, device: row.device, generation: row.generation)
                : "",
        ]) + "\n"
    }
}

/// One line of CSV (RFC 4180): a value is quoted only where it must be.
package enum CSVLine {
    package static func text(_ values: [String]) -> String {
        values.map { value in
            let mustQuote = value.contains { $0 == "," || $0 == "\"" || $0.isNewline }
            return mustQuote ? "\"\(value.replacing("\"", with: "\"\""))\"" : value
        }.joined(separator: ",")
    }
}
