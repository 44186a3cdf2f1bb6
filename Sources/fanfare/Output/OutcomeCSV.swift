import APNs
import Foundation
import Model
import Store

/// One line per delivery of a run, for analysts; tokens by their last 8 characters.
enum OutcomeCSV {
    static let columns = [
        "device", "installation_id", "token", "environment", "locale", "state", "status", "reason", "attempts",
        "settled_at", "apns_id",
    ]

    static func write(_ run: Run, _ store: any AllRoles, to file: OutputFile) async throws {
        try file.write(CSVLine.text(columns) + "\n")
        let (high, low) = store.namespace
        let ids = PushIDSpace(namespace: PushID(high: high, low: low))
        nonisolated(unsafe) let file = file
        _ = try await store.outcomes(run: run.id) { rows in
            try file.write(rows.map { line($0, run, ids) }.joined())
        }
    }

    private static func line(_ row: OutcomeRow, _ run: Run, _ ids: PushIDSpace) -> String {
        let wasSent = row.attempts > 0
        return CSVLine.text([
            "\(row.device)", row.installationID ?? "", row.tokenEnd ?? "", row.environment.rawValue, row.locale ?? "",
            row.state.name, row.status > 0 ? "\(row.status)" : "", row.reason ?? "", "\(row.attempts)",
            row.settledAt?.iso8601 ?? "",
            wasSent ? ids.id(run: run.id, device: row.device, generation: row.generation).description : "",
        ]) + "\n"
    }
}
