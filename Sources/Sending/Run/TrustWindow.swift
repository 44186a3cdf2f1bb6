import APNs
import Model
import Platform

/// The time in which requests may start after the store's last confirmation that the run continues.
final class TrustWindow: Sendable {
    /// The gate that the lanes check before each request.
    let gate: StartGate
    private let length: Duration?

    /// - Parameter length: `nil` means without a limit.
    init(_ length: Duration?) {
        self.length = length
        gate = StartGate(openUntil: length == nil ? BootClock.never : 0)
        _ = renew(from: .now())
    }

    var isLimited: Bool { length != nil }

    /// Opens the gate for another window. Returns `false` if that window is already over.
    func renew(from moment: BootMoment) -> Bool {
        guard let length else { return true }
        gate.open(for: UInt64(max(0, length.inSeconds) * 1_000_000_000), from: moment)
        return gate.answer(at: .now()) != .lapsed
    }

    /// Ends the window: requests wait until the store responds again.
    func lapse() {
        if isLimited { gate.lapse() }
    }
}
