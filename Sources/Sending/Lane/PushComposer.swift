import APNs
import Model
import Platform
import Rendering
import Store

/// Turns the leases of one run into pushes, with payload, headers and id. Only one lane uses it, so its cache needs no
/// lock.
struct PushComposer {
    /// A composed lease.
    struct Composed {
        /// The chunks. There is more than one only if the lease holds several waves.
        var chunks: [Chunk] = []
        /// Deliveries whose payload is over Apple's limit.
        var tooLarge: [SettlementPolicy.Sent] = []
    }

    /// Pushes that share all headers.
    struct Chunk {
        var wave: Timestamp?
        /// The tag of the first push. Each following push has the next tag.
        var base: Int64 = 0
        /// The moment after which no push of this chunk may start: the earliest such moment of its deliveries.
        var startBefore: Timestamp?
        var batch: PushBatch
        var sent: [SettlementPolicy.Sent] = []
    }

    private let run: Int64
    private let renderers: VariantRenderers
    private let headers: PushHeaders
    private let expiry: Expiry
    private let ids: PushIDSpace
    private let payloadMaxBytes: Int
    /// `nil` for a campaign without feedback.
    private let feedback: (key: PushReferenceKey, arrivals: ArrivalSample)?
    /// The reference of each device of the lease that is being composed. Empty without feedback.
    private var references: [Int64: PayloadPrototype.Reference] = [:]
    private var choices: [Choice: (prototype: Int, localeIndex: Int?)] = [:]

    private struct Choice: Hashable {
        var variant: Int?
        var locale: String?
    }

    init(run: Run, renderers: VariantRenderers, ids: PushIDSpace) {
        self.run = run.id
        self.renderers = renderers
        self.ids = ids
        headers = PushHeaders(RunHeaders(run))
        expiry = run.definition.expiry
        payloadMaxBytes = run.definition.campaign.pushType.payloadMaxBytes
        feedback = run.definition.campaign.feedback.map {
            (PushReferenceKey(namespace: ids.namespace), ArrivalSample($0, run: run.id))
        }
    }

    /// Composes a lease. Pushes to tokens that APNs has accepted before come first, to warm up a new connection.
    ///
    /// - Parameters:
    ///   - now: the wall clock at `bootTime`.
    ///   - pushes: records each chunk, see ``InFlightPushes``.
    mutating func compose(
        _ lease: Lease, now: Timestamp, bootTime: UInt64, for run: RunInProgress, _ pushes: InFlightPushes
    ) -> Composed {
        var composed = Composed()
        if feedback != nil { references = references(lease) }
        for isProven in [true, false] {
            for delivery in lease.deliveries where delivery.isProven == isProven {
                add(delivery, lease, now, to: &composed)
            }
        }
        for index in composed.chunks.indices {
            composed.chunks[index].batch.gate = run.control.trust.gate
            if let end = composed.chunks[index].startBefore {
                // Use the store's clock, which set the moment: this machine's clock may be wrong.
                let left = max(Duration.zero, end - (now + lease.storeAhead)).components
                composed.chunks[index].batch.startBefore =
                    bootTime + UInt64(left.seconds) * 1_000_000_000 + UInt64(left.attoseconds / 1_000_000_000)
            }
            pushes.open(&composed.chunks[index], lease: lease.id, of: run)
        }
        return composed
    }

    private mutating func add(_ delivery: LeasedDelivery, _ lease: Lease, _ now: Timestamp, to composed: inout Composed)
    {
        let choice = choice(for: delivery)
        let sent = SettlementPolicy.Sent(
            lease: lease.id, device: delivery.device, generation: delivery.generation,
            leaseNumber: delivery.leaseNumber, attempt: delivery.attempt, excused: delivery.excused,
            localeIndex: choice.localeIndex, wave: delivery.wave, stage: delivery.stage, sentAt: now)
        let payload = renderers[delivery.variant].prototypes[choice.prototype].payload(
            fields: delivery.fields, badge: delivery.badge, sentAt: now,
            reference: feedback == nil ? nil : references[delivery.device])
        guard payload.count <= payloadMaxBytes else {
            composed.tooLarge.append(sent)
            return
        }
        let id = ids.id(run: run, device: delivery.device, generation: delivery.generation)
        let index = index(ofWave: delivery.wave, lease.deliveries.count, in: &composed)
        composed.chunks[index].batch.pushes.append(Push(tag: 0, id: id, token: delivery.token, payload: payload))
        composed.chunks[index].sent.append(sent)
        if let end = delivery.startBefore {
            composed.chunks[index].startBefore = min(end, composed.chunks[index].startBefore ?? end)
        }
    }

    /// Returns the references of a lease's pushes, all made at once.
    private func references(_ lease: Lease) -> [Int64: PayloadPrototype.Reference] {
        guard let feedback else { return [:] }
        let devices = lease.deliveries.map(\.device)
        guard let texts = feedback.key.texts(of: devices.map { PushReference(run: run, device: $0) }) else {
            return [:]
        }
        let pairs = zip(devices, texts).map { device, text in
            (
                device,
                PayloadPrototype.Reference(text: text, asksArrival: feedback.arrivals.contains(device))
            )
        }
        return Dictionary(pairs) { first, _ in first }
    }

    private func index(ofWave wave: Timestamp?, _ room: Int, in composed: inout Composed) -> Int {
        if let index = composed.chunks.lastIndex(where: { $0.wave == wave }) { return index }
        var headers = headers
        headers.expiration = expiry.headerSeconds(wave: wave)
        var chunk = Chunk(wave: wave, batch: PushBatch(headers: headers, pushes: []))
        chunk.batch.pushes.reserveCapacity(room)
        chunk.sent.reserveCapacity(room)
        composed.chunks.append(chunk)
        return composed.chunks.count - 1
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
    init(_ headers: RunHeaders) {
        self.init(
            topic: headers.topic, pushType: headers.pushType, priority: headers.priority,
            expiration: headers.expiration, collapseID: headers.collapseID)
    }
}
