import CCurl
import Logging

// What becomes of a request that is done, and what follows for the connection.
extension CurlLaneWorker {
    /// APNs wants a pause after TooManyProviderTokenUpdates (`apns-protocol.md` section 3).
    private static let tokenUpdatePause: Duration = .seconds(30)

    func settle(_ handle: UnsafeMutableRawPointer, _ code: CURLcode) {
        guard let slot = CurlSlot.of(handle), let entry = slot.entry else { return }
        connects += fanfare_curl_get_long(handle, CURLINFO_NUM_CONNECTS)
        let verdict = CurlVerdict(code, slot, plan: plan, isCold: warmth.isCold)
        let generation = slot.chain?.tokenGeneration ?? 0
        connection?.remove(slot)
        slots.giveBack(slot)
        switch verdict {
        case .answered(let answer, let latency):
            respond(entry.push.tag, .answered(answer), latencyMicroseconds: latency)
            noteAnswer(answer, generation)
        case .missedDeadline:
            respond(entry.push.tag, .unknown(.deadline))
            let seconds = plan.limits.requestDeadline
            follow(health.missedDeadline(), .unreachable(plan.endpoint, reason: "no answer within \(seconds)"))
        case .lost(let words):
            respond(entry.push.tag, .unknown(.connectionLost(words)))
            plan.logger.debug("request lost", metadata: ["code": "\(code.rawValue)", "reason": "\(words)"])
            warmth.cooled()
            // Losses of a connection that was replaced meanwhile say nothing about the new one.
            if slot.writtenOn == sockets.opened { follow(health.lost(), .afterConnect(plan, words)) }
        case .neverStarted:
            respond(entry.push.tag, .notSent(.deadline))
        case .notConnected(let error, let isFinal):
            queue.giveBack(entry)
            follow(isFinal ? .giveUp : health.failed(), error)
        }
    }

    private func noteAnswer(_ answer: PushAnswer, _ generation: Int) {
        health.answered()
        warmth.answered(answer)
        guard answer.retiresConnection else { return }
        isRetiring = true
        if answer.reason == .expiredProviderToken, case .token(let source) = plan.credential {
            source.markExpired(generation)
        }
        if answer.reason == .tooManyProviderTokenUpdates { holdUntil = .now + Self.tokenUpdatePause }
    }

    /// Many requests may report the end of one connection: the first decides.
    private func follow(_ action: ConnectionHealth.Action, _ error: TransportError) {
        guard failure == nil, !isRetiring || action == .giveUp else { return }
        switch action {
        case .goOn: break
        case .retire: isRetiring = true
        case .holdOff(let failures):
            isRetiring = true
            holdUntil = .now + plan.backOff.delay(afterFailures: failures)
            plan.logger.debug("connect failed", metadata: ["failures": "\(failures)", "reason": "\(error)"])
        case .giveUp: failure = error
        }
    }
}

extension TransportError {
    /// A connection that was made and ended before any answer: a refused client certificate shows as this.
    fileprivate static func afterConnect(_ plan: CurlLanePlan, _ words: String) -> TransportError {
        if case .certificate = plan.credential {
            return .credentialUnusable(
                "\(plan.endpoint) ends the connection (\(words)); is the certificate for this environment and topic?")
        }
        return .unreachable(plan.endpoint, reason: words)
    }
}
