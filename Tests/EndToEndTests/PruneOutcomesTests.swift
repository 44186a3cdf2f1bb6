import TestSupport
import Testing

/// What is left of a run once its outcomes by device are deleted, from the command line.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Pruning outcomes` {
    @Test(arguments: StoreKind.available)
    func `the report stays, the outcomes by device do not, and nothing goes without a yes`(
        kind: StoreKind
    ) async throws {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try Installation(devices: 3, store: store)
            try place.importDevices()
            #expect(try place.run("new-podcast").status == 0)
            let before = try place.fanfare("report", "new-podcast", "--format", "json")
            #expect(try place.fanfare("report", "new-podcast", "--check").output.contains("The counts balance."))
            let refused = try place.fanfare("prune-outcomes", "--older-than", "1ms")
            #expect(refused.status == 3 && refused.errors.contains("3 outcomes of 1 run"), "\(refused.errors)")
            #expect(try place.fanfare("report", "new-podcast", "--format", "csv").status == 0)
            let pruned = try place.fanfare("prune-outcomes", "--older-than", "1ms", "--shrink", "--yes")
            #expect(pruned.status == 0 && pruned.output.contains("deleted 3 outcomes of 1 run"), "\(pruned.errors)")
            #expect(try place.fanfare("report", "new-podcast", "--format", "json").output == before.output)
            let check = try place.fanfare("report", "new-podcast", "--check")
            #expect(check.status == 0 && check.output.contains("no delivery was counted, because they were pruned on"))
            let explained = try place.fanfare("explain", "install-0").output
            #expect(explained.contains("is no longer known: its outcomes by device were pruned on"), "\(explained)")
            #expect(!explained.contains("not in the audience"), "\(explained)")
            let gone = try place.fanfare("report", "new-podcast", "--format", "csv")
            #expect(gone.status == 65 && gone.errors.contains("were pruned on"), "\(gone.errors)")
            #expect(gone.output.isEmpty)
            let kept = try place.fanfare("prune-outcomes")
            #expect(kept.status == 0 && kept.output.contains("nothing was deleted"))
        }
    }

    @Test(arguments: ["soon", "0", "-1d"]) func `an age that is none is refused`(age: String) throws {
        let place = try Installation(devices: 1)
        #expect(try place.fanfare("prune-outcomes", "--older-than=\(age)").status == 64)
    }
}
