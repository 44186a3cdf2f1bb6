import Campaigns
import Model
import Store

/// What `verify` found.
struct VerificationPage {
    let path: String
    let verification: Verification

    var text: String {
        let checks = verification.checks
        let broken = checks.count { $0.faultCount > 0 }
        let verdict =
            broken == 0
            ? "\(path): all \(checks.count) promises hold"
            : "\(path): \(broken) OF \(checks.count) PROMISES ARE BROKEN"
        return (checks.flatMap(Self.lines) + ["", "\(verdict)\(budget)."]).joined(separator: "\n")
    }

    private var budget: String {
        guard let check = verification["silent_budget"] else { return "" }
        return "; silent budget violations: \(check.faultCount.grouped)"
    }

    private static func lines(_ check: Verification.Check) -> [String] {
        let mark = check.faultCount == 0 ? "ok" : "BROKEN"
        let count =
            check.faultCount == 0 ? "" : " (\(check.isCountAtLeast ? "at least " : "")\(check.faultCount.grouped))"
        let rest = check.faultCount - check.faults.count
        return ["\(mark.padded(to: 7)) \(check.name.padded(to: 15)) \(check.promise)\(count)"]
            + check.faults.map { "          \(line($0))" }
            + (rest > 0 ? ["          and \(rest.grouped) more"] : [])
    }

    private static func line(_ fault: StoreFault) -> String {
        let device = fault.device.map { id in "device \(id)" + (fault.tokenEnd.map { " (…\($0))" } ?? "") }
        let place = [fault.run.map { "run \($0)" }, device].compactMap(\.self).joined(separator: ", ")
        return place.isEmpty ? fault.what : "\(place): \(fault.what)"
    }

}
