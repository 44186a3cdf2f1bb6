import CCurl
import Logging

// How requests start, and on which connection.
extension CurlLaneWorker {
    func startRequests(_ now: MonotonicTime) {
        if isRetiring, slots.inFlight.isEmpty { retireConnection() }
        guard !isRetiring, now >= holdUntil, queue.count > 0 else { return }
        let limit = warmth.streamLimit(whenWide: plan.curlStreamsMax)
        guard slots.inFlight.count < limit, let connection = openedConnection() else { return }
        do throws(CredentialError) {
            let token = try plan.credential.token()
            while slots.inFlight.count < limit, let entry = queue.next() {
                guard start(entry, token, connection, now) else { return queue.giveBack(entry) }
            }
        } catch {
            failure = .credentialUnusable(error.description)
        }
    }

    /// The connection to use, made if there is none. Nil, with ``failure`` set, where the process has run out of
    /// memory or file descriptors.
    func openedConnection() -> CurlConnection? {
        if connection == nil { connection = CurlConnection(doorbell: doorbell) }
        if connection == nil { fail("out of file descriptors or memory") }
        return connection
    }

    /// A socket was opened: whatever we knew about the connection is over. Requests that wait for it would all go out
    /// at once when it stands, so they are taken back, and one opens it alone (`ProviderProtocol` section 9).
    func noteNewSockets() {
        guard sockets.opened != socketsSeen else { return }
        socketsSeen = sockets.opened
        openedAt = .now
        health.opened()
        warmth.cooled()
        plan.logger.debug("connecting", metadata: ["endpoint": "\(plan.endpoint)"])
        let waiting = slots.inFlight.filter { !$0.isWritten }
        guard waiting.count > 1 else { return }
        for slot in waiting { takeBack(slot) }
    }

    private func takeBack(_ slot: CurlSlot) {
        guard let entry = slot.entry else { return }
        connection?.remove(slot)
        slots.giveBack(slot)
        queue.giveBack(entry)
    }

    private func retireConnection() {
        connection = nil
        isRetiring = false
        warmth.cooled()
        plan.logger.debug("connection retired", metadata: ["endpoint": "\(plan.endpoint)"])
    }

    private func start(
        _ entry: BatchQueue.Entry, _ token: ProviderToken?, _ connection: CurlConnection, _ now: MonotonicTime
    ) -> Bool {
        guard let slot = slots.take() ?? newSlot() else { return false }
        slot.fill(entry, under: headerChain(entry.batch.headers, token), at: now)
        guard connection.add(slot) else {
            slots.giveBack(slot)
            fail("libcurl does not take the request")
            return false
        }
        return true
    }

    private func newSlot() -> CurlSlot? {
        guard CurlLibrary.isReady, let slot = CurlSlot(sockets: sockets) else {
            fail("libcurl has no memory")
            return nil
        }
        let code = slot.setOptions(plan)
        guard code == CURLE_OK else {
            fail("this libcurl lacks what APNs needs: \(CurlLibrary.words(for: code))")
            return nil
        }
        slots.add(slot)
        return slot
    }

    private func headerChain(_ headers: PushHeaders, _ token: ProviderToken?) -> HeaderChain {
        if let chain, chain.tokenGeneration == token?.generation ?? 0, chain.headers == headers { return chain }
        let chain = HeaderChain(headers: headers, token: token)
        self.chain = chain
        return chain
    }

    private func fail(_ reason: String) {
        failure = .unreachable(plan.endpoint, reason: reason)
    }
}
