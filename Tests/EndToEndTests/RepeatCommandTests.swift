import APNsSimulator
import Foundation
import TestSupport
import Testing

/// `run` with content that was just sent.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The same content again` {
    private func run(_ place: Installation, _ more: String...) throws -> Program.Result {
        try Program.run(["run", "new-podcast", "--yes"] + Installation.words + more, in: place.folder)
    }

    private func requests(_ place: Installation) -> Int { place.simulator.log().count }

    @Test func `is refused, unless the command says --again or names the send`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        #expect(try run(place).status == 0)
        #expect(requests(place) == 3)
        let refused = try run(place)
        #expect(refused.status == 3 && refused.errors.contains("already sent the same content"), "\(refused.errors)")
        #expect(refused.errors.contains("add --again"))
        let plan = try Program.run(["plan", "new-podcast"] + Installation.words, in: place.folder)
        #expect(plan.output.contains("Sent before") && plan.output.contains("run 1"), "\(plan.output)")
        #expect(requests(place) == 3)
        #expect(try run(place, "--again").status == 0)
        #expect(requests(place) == 6)
        // Another value is another content.
        let other = [
            "run", "new-podcast", "--yes", "--var", "title=Another", "--var", "link_url=https://example.com/9",
        ]
        #expect(try Program.run(other, in: place.folder).status == 0)
        #expect(requests(place) == 9)
        // A script that names each send decides, and is told.
        let named = try run(place, "--occurrence", "friday")
        #expect(named.status == 0 && named.errors.contains("warning: run"), "\(named.errors)")
        #expect(requests(place) == 12)
    }

    @Test func `is sent once by a plan that was kept, however often its number is given`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        let kept = try Program.run(["plan", "new-podcast", "--save"] + Installation.words, in: place.folder)
        #expect(
            kept.status == 0 && kept.errors.contains("`fanfare run new-podcast --plan 1` sends it"), "\(kept.errors)")
        #expect(try place.fanfare("plans").output.contains("new-podcast, ready to send, 3 devices"))
        let sent = try place.fanfare("run", "new-podcast", "--plan", "1", "--yes")
        #expect(sent.status == 0 && requests(place) == 3, "\(sent.errors)")
        let again = try place.fanfare("run", "new-podcast", "--plan", "1", "--yes")
        #expect(again.errors.contains("nothing remains to be sent") && requests(place) == 3, "\(again.errors)")
        let list = try place.fanfare("plans", "new-podcast", "--json")
        #expect(
            list.output.contains("\"sent as run 1\"") && list.output.contains("\"title\" : \"T\""), "\(list.output)")
        #expect(try place.fanfare("run", "refresh-episodes", "--plan", "1", "--yes").status == 66)
        #expect(try place.fanfare("run", "new-podcast", "--plan", "1", "--var", "title=x", "--yes").status == 64)
        #expect(try place.fanfare("plans", "refresh-episodes").output.contains("no plan was kept"))
    }

    @Test func `is sent as often as a silent push asks for it`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        for _ in 0..<2 {
            let sent = try place.fanfare("run", "refresh-episodes", "--yes")
            #expect(!sent.errors.contains("same content"), "\(sent.errors)")
        }
        let runs = try place.fanfare("status", "--json")
        #expect(runs.output.matches(of: /"refresh-episodes"/).count >= 2, "\(runs.output)")
    }
}
