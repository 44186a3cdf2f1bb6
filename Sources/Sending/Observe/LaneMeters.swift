import APNs
import Model

/// The meters of one lane: it serves several runs, and counts by the topic and push type of each.
struct LaneMeters {
    private struct Kind: Hashable {
        var topic: String
        var pushType: PushType
    }

    private let lane: String
    private var meters: [Kind: SendMeter] = [:]

    init(lane: String) {
        self.lane = lane
    }

    mutating func record(_ responses: [PushCompletion], _ status: LaneStatus, of campaign: Campaign) {
        let kind = Kind(topic: campaign.topic, pushType: campaign.pushType)
        meters[kind, default: SendMeter(campaign, lane: lane)].record(responses, status)
    }

    /// The lane is over: what it had in flight is no more.
    func end() {
        for meter in meters.values { meter.end() }
    }
}
