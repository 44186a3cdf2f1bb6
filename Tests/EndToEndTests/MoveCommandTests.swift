import APNsSimulator
import Foundation
import TestSupport
import Testing

/// `fanfare move` as a person types it: from a file to PostgreSQL, and back.
@Suite(.ownThread, .timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `Moving a store` {
    /// Puts another address into the configuration, as the command says.
    private func use(_ store: String, in place: Installation) throws {
        let lines = try place.folder.read("fanfare.yaml").split(separator: "\n", omittingEmptySubsequences: false)
        let changed = lines.map { $0.hasPrefix("store: ") ? "store: \(store)" : String($0) }
        try place.folder.write(changed.joined(separator: "\n"), to: "fanfare.yaml")
    }

    @Test func `there and back changes no answer, and what was left says where it went`() async throws {
        let url = try await StoreKind.postgres.address()
        try await OwnThread.run {
            let place = try Installation(devices: 12)
            try place.importDevices()
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
            let questions = [["report", "1"], ["devices", "show"], ["segments", "list"], ["status", "1", "--json"]]
            let before = try questions.map { try Program.run($0, in: place.folder).output }
            for (address, shown) in [(url, "postgres://"), ("back.sqlite", place.folder.file("back.sqlite"))] {
                let moved = try place.fanfare("move", "--to", address)
                #expect(moved.status == 0, "\(moved.errors)")
                #expect(
                    moved.output.contains("equal in both stores; put `store: \(shown)")
                        && moved.output.split(separator: "\n").count == 1, "\(moved.output)")
                for words in [["run", "new-podcast", "--yes"], ["devices", "import", "devices.csv"], ["serve"]] {
                    let refused = try Program.run(words, in: place.folder)
                    #expect(refused.status == 78, "\(words) \(refused.errors)")
                    #expect(
                        refused.errors.contains("this store was moved to \(shown)")
                            && refused.errors.split(separator: "\n").count == 1, "\(refused.errors)")
                }
                // It can be read for as long as somebody wants to compare.
                let left = try place.fanfare("report", "1")
                #expect(left.status == 0 && left.errors.contains("moved"), "\(left.errors)")
                try use(address, in: place)
                #expect(try questions.map { try Program.run($0, in: place.folder).output } == before)
                #expect(try place.fanfare("verify").status == 0)
            }
            // Nobody is sent to again, and whoever is new gets it.
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
            #expect(place.simulator.counts().accepted == 12)
            #expect(try place.run("new-podcast", "--occurrence", "b").status == 0)
            #expect(place.simulator.counts().accepted == 24)
        }
    }

    @Test func `is refused while somebody sends, and changes nothing by that`() async throws {
        let url = try await StoreKind.postgres.address()
        try await OwnThread.run {
            let place = try Installation.slow()
            func refuse(_ words: String) throws {
                let refused = try place.fanfare("move", "--to", url)
                #expect(refused.status == 75 && refused.errors.contains(words), "\(refused.errors)")
                #expect(refused.errors.split(separator: "\n").count == 1, "\(refused.errors)")
            }
            let run = try place.startSlowRun()
            try refuse("is in use")
            place.simulator.setFaults([])
            #expect(try run.finish().status == 0)
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            try refuse("stop the daemon first")
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
            try place.expectOnceEach()
            let moved = try place.fanfare("move", "--to", url)
            #expect(moved.status == 0, "\(moved.errors)")
        }
    }

    /// What its process had in flight is in its journal, and put in order first.
    @Test func `takes a run along that was killed in the middle, and it goes on there`() async throws {
        let url = try await StoreKind.postgres.address()
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try place.startSlowRun()
            run.signal(SIGKILL)
            _ = try run.finish()
            place.simulator.setFaults([])
            let moved = try place.fanfare("move", "--to", url, "--json")
            #expect(moved.status == 0, "\(moved.errors)")
            try use(url, in: place)
            let ended = try Program.run(Installation.slowRun, in: place.folder)
            #expect(ended.status == 0, "\(ended.errors)")
            let accepted = place.simulator.log().filter { $0.status == 200 }.compactMap(\.token)
            #expect(Set(accepted).count == Installation.slowDevices)
            #expect(try place.fanfare("report", "slow", "--check").output.contains("The counts balance."))
            #expect(try place.fanfare("verify").status == 0)
        }
    }

    /// The mover stands still for as long as an operator may take it for hanging.
    @Test func `is not given up while its process lives, and each device gets one copy`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        let url = cluster.url(database)
        try await OwnThread.run {
            let devices = 4000
            let place = try Installation(devices: devices)
            try place.importDevices()
            // Each of its many steps takes so long that it is met between the first and the last of them.
            let network = try DelayingProxy(to: .cluster(folder: cluster.folder), roundTrip: .milliseconds(200))
            defer { withExtendedLifetime(network) {} }
            let mover = try RunningProgram(["move", "--to", network.url(database)], in: place.folder)
            // The new store has it on record after the old one. No slower command is between the record and the stop.
            let arrivals = "SELECT count(*) FROM meta WHERE key = 'arrival'"
            try mover.wait { (try? cluster.sql(arrivals, database: database)) == "1" }
            mover.stop()
            #expect(try place.fanfare("resume", "1").errors.contains("has been moving to"))
            let refused = try place.fanfare("move", "--give-up")
            #expect(refused.status == 75 && refused.errors.contains("is moving the store; stop that process first"))
            mover.signal(SIGKILL)
            _ = try mover.finish()
            #expect(try place.fanfare("move", "--give-up").status == 0)
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
            let late = try place.fanfare("move", "--to", url)
            #expect(late.status == 3 && late.errors.contains("new address"), "\(late.errors)")
            try use(url, in: place)
            let there = try place.run("new-podcast", "--occurrence", "a")
            #expect(there.status == 78 && there.errors.contains("an incomplete copy"), "\(there.errors)")
            #expect(place.simulator.counts().accepted == devices)
        }
    }

    @Test func `a place that is taken, none at all, and a move that there is none of are told apart`() async throws {
        let url = try await StoreKind.postgres.address()
        let taken = try await StoreKind.postgres.address()
        try await OwnThread.run {
            let place = try Installation(devices: 2)
            try place.importDevices()
            let made = try place.fanfare("devices", "import", "devices.csv", environment: ["FANFARE_STORE": taken])
            #expect(made.status == 0, "\(made.errors)")
            let cases: [(words: [String], status: Int32, says: String)] = [
                (["--to", taken], 3, "name a new address"),
                (["--to", "fanfare.sqlite"], 3, "name a new address"),
                (["--to", "postgres://anna@127.0.0.1:1/d"], 69, "Connection refused"),
                (["--to", "nowhere/new.sqlite"], 78, "the folder of"),
                (["--to", "mysql://h/d"], 78, "does not begin with postgres://"),
                (["--give-up"], 3, "is not being moved; nothing was done"),
                ([], 64, "give --to ADDRESS, or --give-up"),
                (["--to", url, "--give-up"], 64, "give --to ADDRESS, or --give-up"),
            ]
            for (words, status, says) in cases {
                let refused = try Program.run(["move"] + words, in: place.folder)
                #expect(refused.status == status && refused.errors.contains(says), "\(words) \(refused)")
            }
            // The store is as usable as before.
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        }
    }
}
