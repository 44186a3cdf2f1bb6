import Model

/// What becomes of a pending delivery that is looked at for sending.
enum LeaseDecision: Hashable {
    case send
    /// Put off; if nothing else happens it would be suppressed for this cause.
    case wait(until: Timestamp, for: SuppressionReason)
    case suppress(SuppressionReason)
}
