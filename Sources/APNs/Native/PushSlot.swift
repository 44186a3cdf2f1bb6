import HTTP2

/// Room for one push at a time on a native lane. The lane's thread only.
final class PushSlot {
    private static let path = 0
    private static let id = 1

    let request: ClientRequest
    /// Nil: it has had its response, or is free.
    private(set) var entry: BatchQueue.Entry?
    /// Of ``EventLoop/roundStart``.
    private(set) var startedAt: UInt64 = 0
    /// Counts the pushes it has held.
    private(set) var use = 0
    /// Of the provider token it was sent with.
    private(set) var tokenGeneration = 0

    init(number: Int) {
        request = ClientRequest(number: number, ownFields: [":path", "apns-id"])
    }

    func fill(_ entry: BatchQueue.Entry, under fields: RequestFields, at now: UInt64) {
        self.entry = entry
        use += 1
        startedAt = now
        tokenGeneration = entry.batch.tokenGeneration
        let push = entry.batch.pushes[entry.index]
        request.use(fields)
        request.setOwn(Self.path, count: RequestPath.byteCount(tokenBytes: push.token.count)) {
            RequestPath.write(token: push.token, to: $0)
        }
        request.setOwn(Self.id, count: PushID.textCount) { push.id.write(to: $0) }
        request.body = push.payload
    }

    /// Its push has had its response, or is queued again.
    func clear() {
        entry = nil
    }

    /// The same, for who goes on with the push.
    func takeEntry() -> BatchQueue.Entry? { entry.take() }
}
