import APNsSimulator
import Foundation
import TestSupport
import Testing

/// What every store is for, from the first device to the last outcome, by the commands people give.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A store of each kind` {
    @Test(arguments: StoreKind.available)
    func `takes devices, sends a run, and answers for every push of it`(kind: StoreKind) async throws {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try Installation(devices: 2_000, store: store)
            try place.importDevices()
            let again = try place.fanfare("devices", "import", "devices.csv")
            #expect(again.output.contains("2,000 unchanged"), "\(again.output)\(again.errors)")
            let plan = try place.fanfare(
                "plan", "new-podcast", "--var", "title=T", "--var", "link_url=https://example.com", "--json")
            #expect(plan.status == 0 && plan.output.contains("2000"), "\(plan.errors)")
            let run = try place.run("new-podcast", "--occurrence", "a")
            #expect(run.status == 0, "\(run.errors)")
            #expect(place.simulator.counts().accepted == 2_000)
            let tokens = place.simulator.log().filter { $0.status == 200 }.compactMap(\.token)
            #expect(Set(tokens) == Set(place.tokens))
            let check = try place.fanfare("report", "new-podcast", "--check")
            #expect(check.output.contains("2,000 audience") && check.output.contains("The counts balance."))
            let rows = try place.fanfare("report", "1", "--format", "csv").output.split(separator: "\n")
            #expect(rows.count == 2_001)
            let status = try place.fanfare("status", "new-podcast").output
            #expect(status.contains("State       finished") && status.contains("2,000 accepted"), "\(status)")
            #expect(try place.fanfare("explain", "install-7").output.contains("new-podcast: accepted"))
            let verified = try place.fanfare("verify")
            #expect(verified.status == 0 && verified.output.contains("checks passed"), "\(verified.output)")
            #expect(try place.fanfare("audit").output.contains("run_finished"))
            #expect(try place.fanfare("devices", "export", "-o", "all.csv").status == 0)
            #expect(try place.folder.read("all.csv").split(separator: "\n").count == 2_001)
            // The same occurrence is the same run.
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
            #expect(place.simulator.counts().accepted == 2_000)
        }
    }

    @Test(arguments: StoreKind.available)
    func `serves, says that it is well, sends what it is handed, and stops when told`(kind: StoreKind) async throws {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try Installation(devices: 50, store: store)
            try place.importDevices()
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            let address = try #require(daemon.errors.firstMatch(of: /address=(127\.0\.0\.1:\d+)/)).1
            #expect(try LocalPage.text("http://\(address)/healthz").contains("ok"))
            #expect(try LocalPage.text("http://\(address)/readyz").contains("ready"))
            #expect(try LocalPage.text("http://\(address)/metrics").contains("fanfare_store_up 1"))
            // A store that machines share has as many daemons as one likes.
            if kind == .sqlite { #expect(try place.fanfare("serve").status == 75) }
            let run = try place.run("new-podcast", "--occurrence", "a", "--wait")
            #expect(run.status == 0 && run.output.contains("finished"), "\(run.errors)")
            #expect(place.simulator.counts().accepted == 50)
            #expect(try place.fanfare("status").output.contains("daemon "))
            #expect(try place.fanfare("doctor").output.contains("running: "))
            daemon.signal(SIGTERM)
            let stopped = try daemon.finish()
            #expect(stopped.status == 0, "\(stopped.errors)")
            #expect(stopped.errors.contains("stopped") && !stopped.errors.contains(" error "), "\(stopped.errors)")
            #expect(try !place.fanfare("status").output.contains("daemon "))
        }
    }
}
