import GRDB
import Store
import Model

/// The one update a delivery gets per outcome.
struct SettlementStatement {
    private let update: RowStatement
    private let device, before, state, attempt, doubt, generation, notBefore, locale, status, reason: Int32

    init(_ db: Database, run: Int64, now: Timestamp) throws {
        update = try RowStatement(
            db,
            """
            UPDATE delivery SET
                state = :state, attempt = :attempt, doubts = doubts + :doubt, generation = :generation, not_before = :not_before,
                locale_index = :locale, status = :status, reason = :reason, changed_at = :now
            WHERE run_id = :run AND device_id = :device AND state = 0 AND attempt = :before
            """)
        device = update.parameter(":device")
        before = update.parameter(":before")
        state = update.parameter(":state")
        attempt = update.parameter(":attempt")
        doubt = update.parameter(":doubt")
        generation = update.parameter(":generation")
        notBefore = update.parameter(":not_before")
        locale = update.parameter(":locale")
        status = update.parameter(":status")
        reason = update.parameter(":reason")
        try update.bind(run, update.parameter(":run"))
        try update.bind(now.milliseconds, update.parameter(":now"))
    }

    /// False when the attempt has its outcome already.
    func record(_ settlement: Settlement) throws -> Bool {
        let before = Int64(settlement.attempt) - 1
        try update.bind(settlement.device, device)
        try update.bind(before, self.before)
        try update.bind(settlement.isInDoubt ? 1 : Int64(0), doubt)
        try update.bind(Int64(settlement.generation), generation)
        try update.bind(settlement.localeIndex.map(Int64.init), locale)
        try update.bind(Int64(settlement.status), status)
        switch settlement.verdict {
        case .accepted: try bind(.accepted, attempt: before + 1, reason: settlement.reason)
        case .rejected: try bind(.rejected, attempt: before + 1, reason: settlement.reason)
        case .unknown: try bind(.unknown, attempt: before + 1, reason: settlement.reason)
        case .retry(let moment):
            try bind(.pending, attempt: before + 1, reason: settlement.reason, notBefore: moment.milliseconds)
        case .suppressed(let why):
            // Leased and then not sent: no request was made.
            let wasSent = settlement.mayHaveReachedAPNs || settlement.status != 0
            try bind(.suppressed, attempt: wasSent ? before + 1 : before, reason: why.rawValue)
        }
        try update.run()
        return update.changes > 0
    }

    private func bind(_ state: DeliveryState, attempt: Int64, reason: String?, notBefore: Int64? = nil) throws {
        try update.bind(Int64(state.rawValue), self.state)
        try update.bind(attempt, self.attempt)
        try update.bind(reason, self.reason)
        try update.bind(notBefore, self.notBefore)
    }
}
