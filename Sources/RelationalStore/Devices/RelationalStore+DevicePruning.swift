package import Model
package import Store

extension RelationalStore {
    package func pruneDevices(
        goneBefore: Timestamp?, notSeenSince: Timestamp?, topic: String?, dryRun: Bool, now: Timestamp, by actor: Actor
    ) async throws -> PruneCounts {
        try await prune(
            PrunePolicy(topic: topic, goneBefore: goneBefore, notSeenSince: notSeenSince, now: now), dryRun: dryRun,
            by: actor)
    }

    package func pruneRemovedDevices(now: Timestamp, by actor: Actor) async throws -> PruneCounts {
        try await prune(.removed(now: now), dryRun: false, by: actor)
    }

    private func prune(_ policy: PrunePolicy, dryRun: Bool, by actor: Actor) async throws -> PruneCounts {
        var counts = PruneCounts()
        func record(_ suffix: String = "") async throws {
            guard !dryRun, counts.total > 0 else { return }
            try await recordEvent(
                kind: .devicesPruned, run: nil, actor: actor, detail: counts.summary + suffix, files: [:],
                now: policy.now)
        }
        do {
            var after: Int64 = 0
            while true {
                let batch = try await pruneCandidates(policy, after: after)
                guard let last = batch.last else { break }
                after = last.device
                try Task.checkCancellation()
                let reasons = dryRun ? batch.map(\.reason) : try await prune(batch.map(\.device), policy)
                for reason in reasons { counts.add(reason) }
            }
        } catch {
            // What is deleted is on record, even if the rest is not.
            try? await record("; interrupted")
            throw error
        }
        try await record()
        return counts
    }
}
