import HTTP2
import Logging

// What becomes of a request that is over, and what follows for the connection (`ProviderProtocol` section 8).
extension NativeLaneWorker {
    /// APNs wants a pause after TooManyProviderTokenUpdates (`ProviderProtocol` section 3).
    private static let tokenUpdatePauseNanoseconds: UInt64 = 30_000_000_000
    /// A push that is refused so often is given back.
    private static let refusalsMax = 8

    /// Inside nghttp2.
    func settle(_ number: Int, _ end: ClientRequest.End, on connection: NativeConnection) {
        let slot = slots[number]
        free.append(number)
        guard let entry = slot.takeEntry() else { return }
        pending -= 1
        switch end {
        case .answered: settleAnswer(slot, entry, connection)
        case .notProcessed: settleRefusal(entry, connection)
        case .reset(let code):
            respond(entry.tag, .unknown(.connectionLost("the stream was reset with code \(code)")))
        case .lost: respond(entry.tag, .unknown(.connectionLost(connection.goAway ?? "no answer before its end")))
        }
    }

    private func settleAnswer(_ slot: PushSlot, _ entry: BatchQueue.Entry, _ connection: NativeConnection) {
        let request = slot.request
        let answer =
            request.status == 200
            ? PushAnswer(status: 200) : PushAnswer(status: request.status, body: Array(request.answer))
        let latency = Int64((max(loop.roundStart, slot.startedAt) - slot.startedAt) / 1000)
        respond(entry.tag, .answered(answer), latencyMicroseconds: max(1, latency))
        connection.warmth.answered(answer)
        // Here the peer's SETTINGS are obeyed as they come: there is no round to wait for.
        connection.warmth.polled()
        if connection === current {
            health.answered()
            refusals = 0
        }
        if answer.retiresConnection { noteVerdict(answer, slot.tokenGeneration, connection) }
    }

    private func noteVerdict(_ answer: PushAnswer, _ generation: Int, _ connection: NativeConnection) {
        retire(connection)
        plan.credential.heed(answer, tokenGeneration: generation)
        if answer.reason == .tooManyProviderTokenUpdates {
            holdUntil = loop.roundStart + Self.tokenUpdatePauseNanoseconds
        }
    }

    /// Certainly not processed: it goes again, unless the peer refuses it over and over.
    private func settleRefusal(_ entry: BatchQueue.Entry, _ connection: NativeConnection) {
        guard drainUntil == nil else { return respond(entry.tag, .notSent(failure?.faultOfUnsent ?? .stopped)) }
        // After GOAWAY, or at the end of the connection, it is not about this push.
        guard connection === current, !connection.client.isClosedToRequests else { return queue.giveBack(entry) }
        var entry = entry
        entry.refusals += 1
        guard entry.refusals < Self.refusalsMax else { return respond(entry.tag, .notSent(.streamRefused)) }
        queue.giveBack(entry)
        // What we believe of the peer's limit is wrong: one at a time until it accepts again.
        connection.warmth.cooled()
        refusals += 1
        if refusals >= Self.refusalsMax {
            refusals = 0
            follow(.unreachable(plan.endpoint, reason: "it refuses every stream")) { $0.failed() }
        }
    }
}
