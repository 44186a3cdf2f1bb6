extension PushAnswer {
    /// Reads what came with a status; the body of a 200 is not looked at.
    init(status: Int, body: [UInt8]) {
        self.init(status: status)
        guard status != 200, !body.isEmpty else { return }
        let error = ErrorBody(parsing: body)
        reason = error.reason.map { PushReason($0) }
        timestamp = status == 410 ? error.timestamp : nil
    }
}
