import CCurl
import Logging

// What becomes of a request that is done, and what follows for the connection.
extension CurlLaneWorker {
    /// APNs wants a pause after TooManyProviderTokenUpdates (`ProviderProtocol` section 3).
    private static let tokenUpdatePause: Duration = .seconds(30)

    func settle(_ handle: UnsafeMutableRawPointer, _ code: CURLcode) {
        guard let slot = CurlSlot.of(handle), let entry = slot.entry else { return }
        connects += fanfare_curl_get_long(handle, CURLINFO_NUM_CONNECTS)
        let verdict = CurlVerdict(code, slot, plan: plan, isCold: warmth.isCold)
        let generation = slot.chain?.tokenGeneration ?? 0
        // What ends on a connection that was replaced meanwhile says nothing about the new one.
        let isCurrent = slot.writtenOn == sockets.opened
        connection?.remove(slot)
        slots.giveBack(slot)
        switch verdict {
        case .answered(let answer, let latency):
            respond(entry.push.tag, .answered(answer), latencyMicroseconds: latency)
            noteAnswer(answer, generation, isCurrent: isCurrent)
        case .missedDeadline:
            respond(entry.push.tag, .unknown(.deadline))
            let reason = "no answer within \(plan.limits.requestDeadline)"
            if isCurrent { follow(.unreachable(plan.endpoint, reason: reason)) { $0.missedDeadline() } }
        case .lost(let words):
            respond(entry.push.tag, .unknown(.connectionLost(words)))
            plan.logger.debug("request lost", metadata: ["code": "\(code.rawValue)", "reason": "\(words)"])
            warmth.cooled()
            if isCurrent { follow(.afterConnect(plan, words)) { $0.lost() } }
        case .notHTTP2:
            let reason = "it does not speak HTTP/2; does a proxy inspect TLS?"
            respond(entry.push.tag, .unknown(.connectionLost(reason)))
            failure = failure ?? .untrusted(plan.endpoint, reason: reason)
        case .neverStarted:
            respond(entry.push.tag, .notSent(.deadline))
        case .notConnected(let error, let isFinal):
            queue.giveBack(entry)
            if isFinal { failure = failure ?? error } else { follow(error) { $0.failed() } }
        }
    }

    private func noteAnswer(_ answer: PushAnswer, _ generation: Int, isCurrent: Bool) {
        if isCurrent {
            health.answered()
            warmth.answered(answer)
        }
        guard answer.retiresConnection else { return }
        isRetiring = isRetiring || isCurrent
        plan.credential.heed(answer, tokenGeneration: generation)
        if answer.reason == .tooManyProviderTokenUpdates { holdUntil = .now + Self.tokenUpdatePause }
    }

    /// Opening and closing fast counts as an attack (`ProviderProtocol` section 8): the next connection, should one be
    /// needed, is not opened sooner than the first wait after the last.
    private func spaceConnects() {
        guard warmth.isCold, let openedAt else { return }
        holdUntil = max(holdUntil, openedAt + plan.backOff.delay(afterFailures: 1))
    }

    /// Many requests may report the end of one connection: only the first counts.
    private func follow(_ error: TransportError, _ judge: (inout ConnectionHealth) -> ConnectionHealth.Action) {
        guard failure == nil, !isRetiring else { return }
        switch judge(&health) {
        case .goOn: spaceConnects()
        case .retire: isRetiring = true
        case .holdOff(let failures):
            isRetiring = true
            holdUntil = .now + plan.backOff.delay(afterFailures: failures)
            plan.logger.debug("connect failed", metadata: ["failures": "\(failures)", "reason": "\(error)"])
        case .giveUp: failure = error
        }
    }
}
