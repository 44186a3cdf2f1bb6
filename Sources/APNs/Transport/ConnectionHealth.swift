/// Decides when a connection is to be replaced and when a lane gives up on its host.
struct ConnectionHealth {
    enum Action: Equatable {
        case goOn
        /// Start nothing more on this connection; replace it once nothing is in flight.
        case retire
        /// As `retire`, and wait before the next one; `failures` in a row so far.
        case holdOff(failures: Int)
        case giveUp
    }

    let missedDeadlinesMax: Int
    let connectAttemptsMax: Int
    let reconnectAttemptsMax: Int
    private var missedDeadlines = 0
    /// In a row.
    private(set) var failures = 0
    /// On this connection.
    private var answers = 0
    private var hasEverAnswered = false

    init(_ limits: LaneLimits) {
        missedDeadlinesMax = max(1, limits.missedDeadlinesMax)
        connectAttemptsMax = max(1, limits.connectAttemptsMax)
        reconnectAttemptsMax = max(1, limits.connectAttemptsMax, limits.reconnectAttemptsMax)
    }

    /// A new connection is being made.
    mutating func opened() {
        answers = 0
        missedDeadlines = 0
    }

    mutating func answered() {
        answers += 1
        hasEverAnswered = true
        missedDeadlines = 0
        failures = 0
    }

    mutating func missedDeadline() -> Action {
        missedDeadlines += 1
        if answers == 0 { return failed() }
        return missedDeadlines >= missedDeadlinesMax ? .retire : .goOn
    }

    /// A connection that ends before its first answer is as good as none.
    mutating func lost() -> Action {
        answers == 0 ? failed() : .goOn
    }

    mutating func failed() -> Action {
        failures += 1
        return failures >= (hasEverAnswered ? reconnectAttemptsMax : connectAttemptsMax)
            ? .giveUp : .holdOff(failures: failures)
    }
}
