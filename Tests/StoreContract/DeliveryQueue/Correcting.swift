import Model
import Store
import Testing

extension DeliveryQueueContract {
    @PromiseList static var correcting: [Promise] {
        Promise("a correction is for exactly those who got the other run, or may have got it") { store in
            _ = try await store.importDevices(try (0..<8).map { try record($0) }, now: noon)
            let wrong = try await store.startRun(try definition())
            let lease = try await store.lease(wrong)
            var settlements = lease.settlements(.accepted)
            settlements[1].verdict = .rejected
            settlements[1].status = 400
            settlements[2].verdict = .unknown
            settlements[2].status = 0
            _ = try await store.settle(run: wrong, Array(settlements[..<6]), now: noon)
            // The last one may have got it: its answer was lost, and it was to go out again.
            var put = settlements[6...].map { $0.withVerdict(.retry(notBefore: noon)) }
            put[1].isInDoubt = true
            _ = try await store.settle(run: wrong, put, now: noon)
            try await store.change(wrong, to: .cancelled, reason: nil, now: noon, by: "ray")
            try await store.release(wrong, by: "a", state: .cancelled, reason: nil, now: noon)
            #expect(try await store.reached(by: wrong) == ReachedDevices(all: 6, gone: 0, production: 6))
            // Who comes now is none of them, whatever the campaign's audience says.
            _ = try await store.importDevices([try record(99)], now: noon)
            let later = noon + .seconds(60)
            let run = try await store.startRun(try correction(of: wrong, at: later), now: later)
            let corrected = try await store.lease(run, now: later)
            let reached = [0, 2, 3, 4, 5, 7].map { lease.deliveries[$0].device }
            #expect(Set(corrected.deliveries.map(\.device)) == Set(reached))
            #expect(try await store.summary(run: run).audience == 6)
            _ = try await store.settle(run: run, corrected.settlements(.accepted), now: later)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: later)
            try await store.expectSumsClose(run)
            #expect(try await store.verify(budgets: [:]).faultCount == 0)
        }
        Promise("a device that was reached and removed since is counted as gone") { store in
            _ = try await store.importDevices(try (0..<3).map { try record($0) }, now: noon)
            let wrong = try await store.startRun(try definition())
            let lease = try await store.lease(wrong)
            _ = try await store.settle(run: wrong, lease.settlements(.accepted), now: noon)
            _ = try await store.removeDevice(lease.deliveries[1].device, now: noon, by: "ray")
            #expect(try await store.reached(by: wrong) == ReachedDevices(all: 3, gone: 1, production: 2))
        }
        Promise("those who got the wrong text last are told first") { store in
            _ = try await store.importDevices(try (0..<40).map { try record($0) }, now: noon)
            let wrong = try await store.startRun(try definition())
            let lease = try await store.lease(wrong)
            // The order of answers is none of devices.
            let order = lease.settlements(.accepted).enumerated().sorted { $0.offset * 7 % 40 < $1.offset * 7 % 40 }
            for (second, entry) in order.enumerated() {
                _ = try await store.settle(run: wrong, [entry.element], now: noon + .seconds(Double(second)))
            }
            try await store.release(wrong, by: "a", state: .finished, reason: nil, now: noon + .seconds(40))
            let later = noon + .seconds(60)
            let run = try await store.startRun(try correction(of: wrong, at: later), now: later)
            var told: [Int64] = []
            while told.count < 40 {
                let next = try await store.lease(run, limit: 10, now: later)
                try #require(!next.deliveries.isEmpty)
                told += next.deliveries.map(\.device)
                _ = try await store.settle(run: run, next.settlements(.accepted), now: later)
            }
            #expect(told == order.map(\.element.device).reversed())
            try await store.release(run, by: "a", state: .finished, reason: nil, now: later)
            try await store.expectSumsClose(run)
        }
        Promise("a correction leaves out who cannot be sent to any more, with a reason") { store in
            _ = try await store.importDevices(try (0..<3).map { try record($0) }, now: noon)
            let wrong = try await store.startRun(try definition())
            let lease = try await store.lease(wrong)
            _ = try await store.settle(run: wrong, lease.settlements(.accepted), now: noon)
            try await store.release(wrong, by: "a", state: .finished, reason: nil, now: noon)
            _ = try await store.importDevices([try record(1) { $0.alertsAllowed = false }], now: noon)
            let run = try await store.startRun(try correction(of: wrong, at: noon))
            #expect(try await store.lease(run).deliveries.count == 2)
            #expect(try await store.report(run).suppressed.map(\.reason) == ["alerts_not_allowed"])
        }
    }

    private static func correction(of wrong: Int64, at now: Timestamp) throws -> RunDefinition {
        var definition = try definition("new-podcast.correction") { $0.collapse = .key("new-podcast-\(wrong)") }
        definition.plannedAt = now
        definition.correction = Correction(of: wrong, .replace)
        return definition
    }
}

extension Settlement {
    func withVerdict(_ verdict: Verdict) -> Settlement {
        var settlement = self
        settlement.verdict = verdict
        return settlement
    }
}
