import Model
import Store

/// Checks the reports that wait to be recorded. A row that cannot be read is not counted, and stays.
enum WaitingFeedbackCheck {
    static let name = "waiting_feedback"
    static let promise = "every report of an app that waits to be counted can be read"

    static func faults(_ db: some SQLSession) throws -> Verification.Check {
        var faults: [StoreFault] = []
        var waiting = 0
        var last: Int64 = 0
        while last < .max, case let rows = try db.waitingFeedback(in: last + 1...(.max)), let end = rows.last?.id {
            last = end
            for row in rows {
                if let events = FeedbackPacking.unpack(row.packed) {
                    waiting += events.count
                } else {
                    faults.append(
                        StoreFault("the reports in row \(row.id) of the table waiting_feedback cannot be read"))
                }
            }
        }
        var check = Verification.Check(name, promise, faults: faults, compared: waiting)
        if waiting > 0 { check.remark = waiting.counted("report waits", "reports wait") }
        return check
    }
}
