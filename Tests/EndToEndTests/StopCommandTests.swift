import APNsSimulator
import Foundation
import GRDB
import TestSupport
import Testing

/// `fanfare stop`, against processes that send.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A stop from the command line` {
    private static let lift = ["stop", "--all", "--lift", "--reason", "put right"]

    private func expectRefused(_ place: Installation, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let commands = [
            Installation.slowRun, ["run", "slow", "--yes"], ["run", "--due"],
            ["test-send", "slow", "--device", place.tokens[0]],
        ]
        let before = place.simulator.log().count
        for words in commands {
            let refused = try place.fanfare(words)
            #expect(refused.status == 76, "\(words): \(refused.errors)", sourceLocation: sourceLocation)
            #expect(refused.errors.contains("wrong text"), "\(refused.errors)", sourceLocation: sourceLocation)
            #expect(
                refused.errors.contains("fanfare stop --all --lift"), "\(refused.errors)",
                sourceLocation: sourceLocation)
        }
        #expect(place.simulator.log().count == before, sourceLocation: sourceLocation)
    }

    @Test(arguments: StoreKind.available)
    func `of everything ends a run, refuses every other, and is lifted by name and reason`(kind: StoreKind) async throws
    {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try Installation.slow(store: store)
            let run = try place.startSlowRun()
            let stopped = try place.fanfare("stop", "--all", "--reason", "wrong text", "--json")
            #expect(stopped.status == 0, "\(stopped.errors)")
            #expect(stopped.output.contains(#""recorded" : true"#) && stopped.output.contains(#""quiet" : true"#))
            #expect(stopped.output.contains(#""started_after" : "#), "\(stopped.output)")
            let ended = try run.finish()
            #expect(ended.status == 76 && ended.errors.contains("wrong text"), "\(ended.errors)")
            try expectRefused(place)
            #expect(try place.fanfare("stop", "--all", "--lift").status == 64)
            try expectRefused(place)
            let lifted = try place.fanfare(Self.lift)
            #expect(lifted.status == 0 && lifted.output.contains("is lifted"), "\(lifted.errors)")
            #expect(try place.fanfare(Self.lift).status == 65)
            place.simulator.setFaults([])
            #expect(try place.fanfare(Installation.slowRun).status == 0)
            try place.expectOnceEach()
            let audit = try place.fanfare("audit").output
            #expect(audit.contains("sending_stopped") && audit.contains("stop_lifted"), "\(audit)")
        }
    }

    @Test func `of a campaign leaves the others alone`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            try place.importDevices()
            let run = try place.startSlowRun()
            #expect(try place.fanfare("stop", "slow").status == 0)
            #expect(try run.finish().status == 76)
            place.simulator.setFaults([])
            let other = try place.fanfare(["run", "new-podcast", "--yes"] + Installation.words)
            #expect(other.status == 0, "\(other.errors)")
            #expect(try place.fanfare(Installation.slowRun).status == 76)
            #expect(try place.fanfare("stop", "slow", "--lift", "--reason", "right").status == 0)
            #expect(try place.fanfare(Installation.slowRun).status == 0)
            #expect(try place.fanfare("report", "slow", "--check").output.contains("The counts balance."))
        }
    }

    @Test func `of a campaign's file stops the campaign that it holds`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            try place.importDevices()
            let run = try place.startSlowRun()
            try FileManager.default.moveItem(
                atPath: place.folder.file("campaigns/slow.yaml"), toPath: place.folder.file("campaigns/other.yaml"))
            let stopped = try place.fanfare("stop", "other")
            #expect(
                stopped.status == 0 && stopped.output.contains("the campaign slow was stopped"), "\(stopped.output)")
            #expect(try run.finish().status == 76)
            #expect(try place.fanfare("stop", "other", "--lift", "--reason", "right").status == 0)
        }
    }

    @Test func `where the file cannot be written is heard of by the store`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            try place.importDevices()
            let run = try place.startSlowRun()
            let path = try place.fanfare("stop", "--where").output.trimmingCharacters(in: .newlines)
            let senders = (path as NSString).deletingLastPathComponent
            // What is open stays open; nothing new is written there. The sender stands still meanwhile, or it would miss its
            // folder.
            try run.stop(outsideTransactionsOf: place.folder.file("fanfare.sqlite"))
            try FileManager.default.moveItem(atPath: senders, toPath: senders + ".away")
            try Data().write(to: URL(filePath: senders))
            let stopped = try place.fanfare("stop", "--all", "--reason", "wrong text")
            try FileManager.default.removeItem(atPath: senders)
            try FileManager.default.moveItem(atPath: senders + ".away", toPath: senders)
            run.signal(SIGCONT)
            #expect(stopped.status == 0 && stopped.errors.contains("cannot be written"), "\(stopped.errors)")
            let end = try run.finish()
            #expect(end.status == 76, "\(end.status) \(end.errors) \(end.output)")
            place.simulator.setFaults([])
            #expect(try place.fanfare(Installation.slowRun).status == 76)
            #expect(try place.fanfare("stop", "--all", "--lift", "--reason", "right").status == 0)
            #expect(try place.fanfare(Installation.slowRun).status == 0)
            #expect(try place.fanfare("report", "slow", "--check").output.contains("The counts balance."))
        }
    }

    @Test func `of a run pauses it until it is resumed`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try place.startSlowRun()
            #expect(try place.fanfare("stop", "1", "--reason", "wrong text").status == 0)
            #expect(try run.finish().status == 76)
            #expect(try place.fanfare("status", "1").output.contains("wrong text"))
            #expect(try place.fanfare(Installation.slowRun).status == 75)
            place.simulator.setFaults([])
            let resumed = try place.fanfare("resume", "1")
            #expect(resumed.status == 0, "\(resumed.errors)")
            try place.expectOnceEach()
            #expect(try place.fanfare("stop", "1").status != 0)
            #expect(try place.fanfare("stop", "77").status == 66)
            #expect(try place.fanfare("stop", "slwo").status == 66)
            let path = try place.fanfare("stop", "--where").output.trimmingCharacters(in: .newlines)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test func `by the bare file ends a run, also one that starts later`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try place.startSlowRun()
            let path = try place.fanfare("stop", "--where").output.trimmingCharacters(in: .newlines)
            #expect(FileManager.default.createFile(atPath: path, contents: nil))
            #expect(try run.finish().status == 76)
            #expect(try place.fanfare(Installation.slowRun).status == 76)
            // Once it was heard of, taking the file away lifts nothing.
            try FileManager.default.removeItem(atPath: path)
            #expect(try place.fanfare(Installation.slowRun).status == 76)
            #expect(try place.fanfare(Self.lift).status == 0)
            place.simulator.setFaults([])
            #expect(try place.fanfare(Installation.slowRun).status == 0)
            try place.expectOnceEach()
        }
    }

    @Test func `while the store is locked is obeyed at once, and recorded when it can be`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try place.startSlowRun()
            // The run writes as well: its turn is waited for.
            let writer = try place.patientQueue()
            var asked = 0
            try writer.writeWithoutTransaction { db in
                try db.execute(sql: "BEGIN IMMEDIATE")
                let stopped = try place.fanfare("stop", "--all", "--reason", "wrong text", "--json")
                #expect(stopped.status == 0 && stopped.output.contains(#""recorded" : false"#), "\(stopped.output)")
                #expect(stopped.errors.contains("the store has not recorded the stop yet"), "\(stopped.errors)")
                // A sender on a busy machine may hear of it after the command has ended. Three times as long as an
                // answer takes nothing more is asked: it has stopped.
                try Patience.wait(for: "the last request, after \(asked)") {
                    let before = asked
                    asked = place.simulator.log().count
                    if asked != before { sleep(3) }
                    return asked == before
                }
                try db.execute(sql: "ROLLBACK")
            }
            try writer.close()
            #expect(asked < Installation.slowDevices)
            // Neither does it go on once the store is free.
            #expect(try run.finish().status == 76)
            #expect(place.simulator.log().count == asked)
            #expect(try place.fanfare("report", "slow", "--check").output.contains("The counts balance."))
            let path = try place.fanfare("stop", "--where").output.trimmingCharacters(in: .newlines)
            try FileManager.default.removeItem(atPath: path)
            try expectRefused(place)
            #expect(try place.fanfare(Self.lift).status == 0)
        }
    }

    @Test func `of an occurrence is obeyed while the store is locked`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try place.startSlowRun()
            // The run writes as well: its turn is waited for.
            let writer = try place.patientQueue()
            try writer.writeWithoutTransaction { db in
                try db.execute(sql: "BEGIN IMMEDIATE")
                let stopped = try place.fanfare("stop", "slow/a", "--reason", "wrong text")
                #expect(stopped.status == 0, "\(stopped.errors)")
                #expect(stopped.errors.contains("it has not responded within 1s"), "\(stopped.errors)")
                try db.execute(sql: "ROLLBACK")
            }
            try writer.close()
            #expect(try run.finish().status == 76)
            #expect(try place.fanfare("status", "1").output.contains("wrong text"))
            place.simulator.setFaults([])
            #expect(try place.fanfare("resume", "slow/a").status == 0)
            try place.expectOnceEach()
            let unknown = try place.fanfare("stop", "slow/b")
            #expect(unknown.status == 66 && unknown.errors.contains("NOTHING IS STOPPED"), "\(unknown.errors)")
            let misspelled = try place.fanfare("stop", "Slow-")
            #expect(misspelled.status == 66)
            #expect(misspelled.errors.contains("did you mean \"slow\"?"), "\(misspelled.errors)")
            let path = try place.fanfare("stop", "--where").output.trimmingCharacters(in: .newlines)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test func `of a wrong run number, given while the store is locked, is lifted without the store`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            try place.importDevices()
            let path = try place.fanfare("stop", "--where").output.trimmingCharacters(in: .newlines)
            let writer = try place.patientQueue()
            try writer.writeWithoutTransaction { db in
                try db.execute(sql: "BEGIN IMMEDIATE")
                #expect(try place.fanfare("stop", "7", "--reason", "wrong text").status == 0)
                #expect(FileManager.default.fileExists(atPath: path))
                let lifted = try place.fanfare("stop", "7", "--lift", "--reason", "wrong number")
                #expect(lifted.status == 0 && lifted.output.contains("is lifted"), "\(lifted.errors)")
                #expect(lifted.errors.contains("has not recorded"), "\(lifted.errors)")
                #expect(!FileManager.default.fileExists(atPath: path))
                try db.execute(sql: "ROLLBACK")
            }
            try writer.close()
            let again = try place.fanfare("stop", "7", "--lift", "--reason", "wrong number")
            #expect(again.status == 65 && again.errors.contains("fanfare resume 7"), "\(again.errors)")
        }
    }

    @Test func `outlives the daemon, and the next one waits for its end`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try place.startSlowRun()
            #expect(try place.fanfare("stop", "--all", "--reason", "wrong text").status == 0)
            #expect(try run.finish().status == 76)
            let asked = place.simulator.log().count
            place.simulator.setFaults([])
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("sending is stopped") }
            #expect(place.simulator.log().count == asked)
            #expect(try place.fanfare(Self.lift).status == 0)
            try daemon.wait { place.simulator.counts().accepted == Installation.slowDevices }
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
            try place.expectOnceEach()
        }
    }
}
