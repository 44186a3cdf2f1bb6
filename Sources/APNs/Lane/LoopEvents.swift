import HTTP2

/// The event loop's callbacks as closures, created where the type of the connection is known. If the driver itself
/// conformed to the protocols, its generic code would run unspecialised and several times slower.
final class LoopEvents: EventHandler, TimerTarget {
    var wokenUp: () -> Void = {}
    var timeCame: () -> Void = {}
    var roundIsOver: () -> Void = {}

    func ready(_ readiness: Readiness) { wokenUp() }

    func roundEnded() { roundIsOver() }

    func timerFired(_ tag: Int64) { timeCame() }

    func abandon() {}

    func clear() {
        wokenUp = {}
        timeCame = {}
        roundIsOver = {}
    }
}
