import Model
import Store
import Testing

/// The sums of reports, compared with the reports.
extension DeviceRegistryContract {
    @PromiseList static var feedbackSums: [Promise] {
        Promise("devices whose reports of a goal name a push are counted") { store in
            let run = try await sent(store, devices: 40) { $0.holdoutPercent = 50 }
            let split = CampaignSplit(try #require(try await store.run(run)).definition.campaign)
            let treated = (1...40).filter { !split.isHeldOut(Int64($0)) }
            let goal = FeedbackGoal(kind: .converted, name: "played", within: .seconds(3600))
            _ = try await store.recordFeedback((1...40).map { converted("install-\($0)", id: 1) })
            #expect(try await store.feedbackArms(ofRun: run, [goal])[goal]?.namedPush == 0)
            _ = try await store.recordFeedback(
                treated.prefix(3).flatMap { device in
                    [1, 2].map { opened(run, Int64(device), .converted, name: "played", id: $0) }
                } + [opened(run, Int64(treated[4]), .converted, name: "played", at: noon + .seconds(3600))])
            let opens = FeedbackGoal(kind: .opened, within: .seconds(3600))
            _ = try await store.recordFeedback([opened(run, Int64(treated[5]))])
            let arms = try await store.feedbackArms(ofRun: run, [goal, opens])
            #expect(arms[goal]?.namedPush == 3 && arms[goal]?.heldOut.reached == 40 - treated.count)
            #expect(arms[opens]?.namedPush == 0 && arms[opens]?.treated.reached == 1)
        }
    }
}
