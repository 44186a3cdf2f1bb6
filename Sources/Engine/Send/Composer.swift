import APNs
import Model
import Storage

/// Turns a lease into pushes: payload, headers, id. Kept by one lane, so its cache needs no lock.
struct Composer {
    struct Chunk {
        var batch: PushBatch
        var sent: [SettlementRule.Sent]
        /// Deliveries whose payload is over Apple's limit.
        var tooLarge: [SettlementRule.Sent]
    }

    private let run: Int64
    private let renderers: VariantRenderers
    private let headers: PushHeaders
    private let ids: PushIDSpace
    private let payloadMaxBytes: Int
    private var choices: [Choice: (prototype: Int, localeIndex: Int?)] = [:]

    private struct Choice: Hashable {
        var variant: Int?
        var locale: String?
    }

    init(run: Run, renderers: VariantRenderers, ids: PushIDSpace) {
        self.run = run.id
        self.renderers = renderers
        self.ids = ids
        headers = PushHeaders(run)
        payloadMaxBytes = run.definition.campaign.pushType.payloadMaxBytes
    }

    /// Tokens that were accepted before come first: a fresh connection is warmed up with them.
    mutating func compose(_ lease: Lease, chunks: OpenChunks, now: Timestamp) -> Chunk {
        var chunk = Chunk(batch: PushBatch(headers: headers, pushes: []), sent: [], tooLarge: [])
        chunk.batch.pushes.reserveCapacity(lease.deliveries.count)
        chunk.sent.reserveCapacity(lease.deliveries.count)
        for delivery in lease.deliveries where delivery.isProven { add(delivery, lease.id, now, to: &chunk) }
        for delivery in lease.deliveries where !delivery.isProven { add(delivery, lease.id, now, to: &chunk) }
        let base = chunks.open(chunk.sent)
        for row in chunk.batch.pushes.indices { chunk.batch.pushes[row].tag = base + Int64(row) }
        return chunk
    }

    private mutating func add(_ delivery: LeasedDelivery, _ lease: Int64, _ now: Timestamp, to chunk: inout Chunk) {
        let choice = choice(for: delivery)
        let sent = SettlementRule.Sent(
            lease: lease, device: delivery.device, generation: delivery.generation, attempt: delivery.attempt,
            doubts: delivery.doubts, localeIndex: choice.localeIndex)
        let payload = renderers[delivery.variant].prototypes[choice.prototype].payload(
            fields: delivery.fields, badge: delivery.badge, sentAt: now)
        guard payload.count <= payloadMaxBytes else {
            chunk.tooLarge.append(sent)
            return
        }
        let id = ids.id(run: run, device: delivery.device, generation: delivery.generation)
        chunk.batch.pushes.append(Push(tag: 0, id: id, token: delivery.token, payload: payload))
        chunk.sent.append(sent)
    }

    private mutating func choice(for delivery: LeasedDelivery) -> (prototype: Int, localeIndex: Int?) {
        let key = Choice(variant: delivery.variant, locale: delivery.locale)
        if let known = choices[key] { return known }
        let choice = renderers[delivery.variant].choice(forLocale: delivery.locale)
        choices[key] = choice
        return choice
    }
}

extension PushHeaders {
    /// The headers of every push of a run (`apns-protocol.md` section 4).
    init(_ run: Run) {
        let campaign = run.definition.campaign
        let collapseID: String? =
            switch campaign.collapse {
            case .none: nil
            case .key(let key): key
            case .run: "\(campaign.name.utf8.count <= 40 ? campaign.name : "run")-\(run.id)"
            }
        self.init(
            topic: campaign.topic + campaign.pushType.topicSuffix, pushType: campaign.pushType.rawValue,
            priority: campaign.priority.rawValue, expiration: run.definition.expirationSeconds,
            collapseID: collapseID)
    }
}
