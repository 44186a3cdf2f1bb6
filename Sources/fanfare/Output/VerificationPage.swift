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

    /// The stable shape of `verify --json`.
    struct JSON: Encodable {
        struct Check: Encodable {
            var name, promise: String
            var faultCount: Int
            var faults: [Fault]
        }

        struct Fault: Encodable {
            var run: Int64?
            var device: Int64?
            var token: String?
            var what: String
        }

        var store: String
        var isSound: Bool
        var faultCount: Int
        var checks: [Check]
    }

    var json: JSON {
        JSON(
            store: path, isSound: verification.isSound, faultCount: verification.faultCount,
            checks: verification.checks.map { check in
                JSON.Check(
                    name: check.name, promise: check.promise, faultCount: check.faultCount,
                    faults: check.faults.map {
                        JSON.Fault(run: $0.run, device: $0.device, token: $0.tokenEnd.map { "…\($0)" }, what: $0.what)
                    })
            })
    }
}
