import APNs
import Model
package import Store

/// A sender reports in its journal that it waits for the store, because the store accepts no writes.
extension JournalNote {
    package init(_ wait: StoreWait) {
        self.init(since: wait.since.milliseconds, code: UInt8(clamping: wait.reason.code))
    }
}

extension StoreWait {
    init?(_ note: JournalNote) {
        guard let reason = Reason.allCases.first(where: { $0.code == note.code }) else { return nil }
        self.init(since: Timestamp(milliseconds: note.since), reason: reason)
    }
}

extension StoreWait.Reason {
    fileprivate var code: Int {
        switch self {
        case .locked: 1
        case .diskFull: 2
        case .failing: 3
        case .away: 4
        case .refused: 5
        }
    }
}
