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
    private let renderer: PayloadRenderer
    private let headers: PushHeaders
    private let ids: PushIDSpace
    private let payloadMaxBytes: Int
    private var choices: [String?: (prototype: Int, localeIndex: Int?)] = [:]

    init(run: Run, renderer: PayloadRenderer, ids: PushIDSpace) {
        self.run = run.id
        self.renderer = renderer
        self.ids = ids
        headers = PushHeaders(run)
        payloadMaxBytes = run.definition.campaign.pushType.payloadMaxBytes
    }

    /// Tokens that were accepted before come first: a fresh connection is warmed up with them.
    mutating func compose(_ lease: Lease, chunks: OpenChunks) -> Chunk {
        var chunk = Chunk(batch: PushBatch(headers: headers, pushes: []), sent: [], tooLarge: [])
        chunk.batch.pushes.reserveCapacity(lease.deliveries.count)
        chunk.sent.reserveCapacity(lease.deliveries.count)
        for delivery in lease.deliveries where delivery.isProven { add(delivery, lease.id, to: &chunk) }
        for delivery in lease.deliveries where !delivery.isProven { add(delivery, lease.id, to: &chunk) }
        let base = chunks.open(chunk.sent)
        for row in chunk.batch.pushes.indices { chunk.batch.pushes[row].tag = base + Int64(row) }
        return chunk
    }

    private mutating func add(_ delivery: LeasedDelivery, _ lease: Int64, to chunk: inout Chunk) {
        let choice = choice(forLocale: delivery.locale)
        let sent = SettlementRule.Sent(
            lease: lease, device: delivery.device, generation: delivery.generation, attempt: delivery.attempt,
            doubts: delivery.doubts, localeIndex: choice.localeIndex)
        let payload = renderer.prototypes[choice.prototype].payload(fields: delivery.fields, badge: delivery.badge)
        guard payload.count <= payloadMaxBytes else {
            chunk.tooLarge.append(sent)
            return
        }
        let id = ids.id(run: run, device: delivery.device, generation: delivery.generation)
        chunk.batch.pushes.append(Push(tag: 0, id: id, token: delivery.token, payload: payload))
        chunk.sent.append(sent)
    }

    private mutating func choice(forLocale text: String?) -> (prototype: Int, localeIndex: Int?) {
        if let known = choices[text] { return known }
        let choice = renderer.choice(forLocale: text)
        choices[text] = choice
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
