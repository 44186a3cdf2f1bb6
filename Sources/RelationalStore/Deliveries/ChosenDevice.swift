import Model
package import Store

/// The one device of a test run, chosen by a person.
package struct ChosenDevice {
    package let device: Int64
    package let environment: Int64
    package let generation: Int64
    package let decision: FreezePolicy.Decision
    package let profile: DeliveryProfile

    init(_ device: Int64, of campaign: Campaign, variant: Int?, _ db: some SQLSession) throws {
        let found = try db.first(
            """
            SELECT topic.name, environment, token_generation, status, alerts_allowed, user_id, locale, app_version,
                time_zone, country
            FROM device JOIN topic ON topic.id = device.topic_id WHERE device.id = $1
            """, device
        ) { row in
            let topic = try row.text(0)
            guard topic == campaign.deviceTopic else {
                throw StoreError.deviceOfOtherTopic(device, topic: topic, expected: campaign.deviceTopic)
            }
            return ChosenDevice(
                device: device, environment: try row.int64(1), generation: try row.int64(2),
                decision: FreezePolicy(campaign, waves: nil).decideByHand(
                    device: device, status: DeviceStatus(code: try row.int64(3)),
                    alertsAllowed: try row.boolOrNil(4) != false, user: try row.textOrNil(5), variant: variant),
                profile: DeliveryProfile(
                    locale: try row.textOrNil(6), appVersion: try row.textOrNil(7), timeZone: try row.textOrNil(8),
                    country: try row.textOrNil(9)))
        }
        guard let found else { throw StoreError.noSuchDevice(device) }
        self = found
    }

    private init(
        device: Int64, environment: Int64, generation: Int64, decision: FreezePolicy.Decision, profile: DeliveryProfile
    ) {
        self.device = device
        self.environment = environment
        self.generation = generation
        self.decision = decision
        self.profile = profile
    }
}
