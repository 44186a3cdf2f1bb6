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
        Promise(
            "counts that do not match the reports are found, but not those of reports that were deleted",
            opening: { stores in
                let store = try await stores.open()
                let run = try await sent(store, devices: 6)
                let kinds: [FeedbackKind] = [.opened, .dismissed, .converted]
                _ = try await store.recordFeedback(
                    kinds.flatMap { kind in
                        (1...6).map { opened(run, $0, kind, name: kind == .converted ? "played" : "") }
                    })
                let faults = { () async throws -> [String]? in
                    let check = try await store.verify(budgets: [:], faultsMax: 9)["feedback_counts"]
                    #expect(check?.compared ?? 0 >= 2)
                    return check?.faults.map(\.what)
                }
                #expect(try await faults() == [])
                let wrong = { (change: String, kind: FeedbackKind) async throws -> Void in
                    let place = "WHERE run_id = \(run) AND kind = \(kind.rawValue)"
                    try await stores.damage("UPDATE feedback_count SET events = events \(change) \(place)")
                }
                try await wrong("+ 50", .opened)
                try await wrong("- 1", .dismissed)
                let both = [
                    "56 reports opened are counted, and 6 are kept", "5 reports dismissed are counted, and 6 are kept",
                ]
                #expect(try await faults() == both)
                // A removed device accounts for one open, not for fifty, and for any number of conversions.
                _ = try await store.removeDevice(1, now: noon + .seconds(90), by: "test")
                #expect(try await faults()?.first == "56 reports opened are counted, and 5 are kept")
                try await wrong("- 50", .opened)
                try await wrong("+ 1", .dismissed)
                #expect(try await faults() == [])
                // Two devices of the run become one.
                _ = try await store.registerDevices(
                    [try record(2, installation: "install-3")], reading: true, now: noon + .seconds(600))
                #expect(try await faults() == [])
                try await wrong("+ 50", .opened)
                #expect(try await faults()?.count == 1)
                _ = try await store.removeFeedback(
                    receivedBefore: noon + .seconds(86_400), now: noon + .seconds(86_400))
                #expect(try await faults() == [])
            })
    }
}
