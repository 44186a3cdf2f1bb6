import HTTP2

/// What the event loop calls. The driver's own conformance would run its generic code unspecialised, several times as
/// slow; these closures are made where the type of the connection is known.
final class LoopEvents: EventHandler, TimerTarget {
    var doorbellRang: () -> Void = {}
    var timeCame: () -> Void = {}
    var roundIsOver: () -> Void = {}

    func ready(_ readiness: Readiness) { doorbellRang() }

    func roundEnded() { roundIsOver() }

    func timerFired(_ tag: Int64) { timeCame() }

    func abandon() {}

    func clear() {
        doorbellRang = {}
        timeCame = {}
        roundIsOver = {}
    }
}
