import APNs
package import Model
package import Storage

/// Answers "who would get what" without sending anything.
package struct Planner: Sendable {
    /// A device field is taken to be no longer than this many bytes when the largest payload is worked out.
    package static let fieldMaxBytes = 100

    private let store: Store

    package init(store: Store) {
        self.store = store
    }

    package func plan(_ definition: RunDefinition, now: Timestamp) async throws -> Plan {
        let campaign = definition.campaign
        let renderer = try PayloadRenderer(definition)
        let reach = try await store.reach(
            of: campaign.audience.expression, topic: campaign.topic, pushType: campaign.pushType, now: now)
        return Plan(
            definition: definition, reach: reach, blocks: Self.blocks(renderer, reach),
            payloadLimitBytes: campaign.pushType.payloadMaxBytes, headers: Self.headers(definition),
            refusals: GuardRefusal.check(campaign.guards, reach: reach.total))
    }

    private static func blocks(_ renderer: PayloadRenderer, _ reach: Reach) -> [Plan.Block] {
        var devices = [Int](repeating: 0, count: renderer.prototypes.count)
        for slice in reach.slices {
            devices[renderer.choice(forLocale: slice.locale).prototype] += slice.count
        }
        return renderer.prototypes.indices.map { index in
            Plan.Block(
                locale: renderer.localeName(index), devices: devices[index],
                payloadMaxBytes: renderer.prototypes[index].worstCaseByteCount(fieldMaxBytes: fieldMaxBytes),
                sample: renderer.sample(index))
        }
    }

    private static func headers(_ definition: RunDefinition) -> [Plan.Header] {
        let run = Run(
            id: 0, campaign: definition.campaign.name, occurrence: "", definition: definition, state: .scheduled,
            createdAt: definition.plannedAt)
        let headers = PushHeaders(run)
        var list = [
            Plan.Header(name: "apns-topic", value: headers.topic),
            Plan.Header(name: "apns-push-type", value: headers.pushType),
            Plan.Header(name: "apns-priority", value: "\(headers.priority)"),
        ]
        if let expiration = headers.expiration {
            list.append(Plan.Header(name: "apns-expiration", value: "\(expiration)"))
        }
        if let collapseID = headers.collapseID {
            let shown = definition.campaign.collapse == .run ? "one per run" : collapseID
            list.append(Plan.Header(name: "apns-collapse-id", value: shown))
        }
        return list
    }
}

extension PayloadRenderer {
    /// A payload as a person would read it: device fields show their own names, a badge count shows 1.
    package func sample(_ prototype: Int) -> String {
        let fields = fields.map { Optional("<\($0.name)>") }
        return String(decoding: prototypes[prototype].payload(fields: fields, badge: 1), as: UTF8.self)
    }
}
