import HTTP2

// How requests start, and how long they may take.
extension NativeLaneWorker {
    func startRequests(_ now: UInt64) {
        openConnection(now)
        guard queue.count > 0, now >= holdUntil, let connection = current else { return }
        let limit = connection.streamLimit(plan.limits.streamsMax)
        guard connection.client.openRequests < limit else { return }
        let token: ProviderToken?
        do throws(CredentialError) {
            token = try plan.credential.token()
        } catch {
            failure = .credentialUnusable(error.description)
            return
        }
        while connection.client.openRequests < limit, let entry = queue.next() {
            guard start(entry, token, on: connection, now) else {
                queue.giveBack(entry)
                return retire(connection)
            }
        }
        connection.liveness.isBusy(connection.client.openRequests > 0, at: now)
    }

    private func start(
        _ entry: BatchQueue.Entry, _ token: ProviderToken?, on connection: NativeConnection, _ now: UInt64
    ) -> Bool {
        let number = free.popLast() ?? newSlot()
        let slot = slots[number]
        slot.fill(entry, under: fields(of: entry.batch, token), at: now)
        guard connection.client.submit(slot.request) else {
            slot.clear()
            free.append(number)
            return false
        }
        connection.order.add(slot)
        pending += 1
        return true
    }

    private func newSlot() -> Int {
        slots.append(PushSlot(number: slots.count))
        return slots.count - 1
    }

    private func fields(of batch: QueuedBatch, _ token: ProviderToken?) -> RequestFields {
        let generation = token?.generation ?? 0
        if let fields = batch.fields, batch.tokenGeneration == generation { return fields }
        defer { lastBatch = batch }
        if let last = lastBatch, last.tokenGeneration == generation, last.headers == batch.headers,
            let fields = last.fields
        {
            batch.lay(fields, tokenGeneration: generation)
            return fields
        }
        let fields = RequestFields(batch.headers, token: token, authority: plan.endpoint.authority)
        batch.lay(fields, tokenGeneration: generation)
        return fields
    }

    func checkDeadlines(_ now: UInt64) {
        let deadline = plan.limits.requestDeadline.nanoseconds
        for connection in living {
            while let slot = connection.order.oldest(), now >= slot.startedAt + deadline {
                miss(slot, on: connection)
            }
            connection.order.compact(open: connection.client.openRequests)
        }
    }

    /// A peer that allows no stream for as long as a request may take is of no use.
    func checkStall(_ now: UInt64) {
        guard let connection = current else { return }
        let isStalled =
            queue.count > 0 && connection.client.openRequests == 0
            && connection.streamLimit(plan.limits.streamsMax) == 0
        guard isStalled else {
            connection.stalledSince = nil
            return
        }
        let since = connection.stalledSince ?? now
        connection.stalledSince = since
        guard now >= since + plan.limits.requestDeadline.nanoseconds else { return }
        follow(.unreachable(plan.endpoint, reason: "it allows no stream")) { $0.failed() }
    }

    private func miss(_ slot: PushSlot, on connection: NativeConnection) {
        guard let tag = slot.entry?.tag else { return }
        // What was not written whole was not processed: the peer keeps its window shut, or reads nothing.
        respond(tag, slot.request.isWritten ? .unknown(.deadline) : .notSent(.deadline))
        slot.clear()
        pending -= 1
        connection.client.cancel(slot.request)
        guard connection === current else { return }
        let reason = "no answer within \(plan.limits.requestDeadline)"
        follow(.unreachable(plan.endpoint, reason: reason)) { $0.missedDeadline() }
    }
}

extension RequestFields {
    /// What all pushes of a batch share; `:path` and `apns-id` go between (`ProviderProtocol` section 4).
    convenience init(_ headers: PushHeaders, token: ProviderToken?, authority: String) {
        let pseudo = [
            Field(":method", Array("POST".utf8)), Field(":scheme", Array("https".utf8)),
            Field(":authority", Array(authority.utf8)),
        ]
        let shared = headers.sharedHeaders(authorization: token?.authorization)
        self.init(pseudo + shared.map { Field($0.name, $0.value, isIndexed: $0.indexing == .indexed) })
    }
}
