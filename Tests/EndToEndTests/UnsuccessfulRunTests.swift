import APNsSimulator
import Foundation
import TestSupport
import Testing

/// Runs that finish, and of which nobody got anything.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A run that is no success` {
    private func place(devices: Int) throws -> Installation {
        let place = try Installation(devices: devices)
        try place.importDevices()
        try place.folder.write(
            "template: note\nalert: {en: {body: \"{{words}}\"}}\ndefault_locale: en\n", to: "templates/note.yaml")
        try place.folder.write(
            "campaign: note\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: note\naudience: everyone\n"
                + "expires_after: 1h\nvariables: {words: Hello}\n", to: "campaigns/note.yaml")
        return place
    }

    /// A page of text, without its line breaks.
    private func page(_ result: Program.Result) -> String {
        result.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    @Test func `in which every token was refused exits 76, and everything shows it`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 30)
            try place.change("UPDATE device SET token = randomblob(32)")
            let run = try place.fanfare("run", "note", "--yes", "--occurrence", "a")
            let words = "0 of 30 pushes were accepted: 30 were rejected, 0 ended unknown"
            #expect(run.status == 76, "\(run.errors)")
            #expect(run.errors.contains("run 1 finished without success: \(words)"), "\(run.errors)")
            // Nor does a second call for the same occurrence call it a success.
            #expect(try place.fanfare("run", "note", "--yes", "--occurrence", "a").status == 76)
            #expect(page(try place.fanfare("status", "1")).contains("finished without success: \(words)"))
            #expect(try place.fanfare("status", "1", "--json").output.contains(#""halt" : "unsuccessful""#))
            #expect(page(try place.fanfare("report", "1")).contains("finished without success: \(words)"))
            #expect(try place.fanfare("audit").output.contains(words))
            try place.configure(more: "success: {min_accepted: 0, max_rejected: 100%}")
            #expect(try place.fanfare("run", "note", "--yes", "--occurrence", "b").status == 0)
        }
    }

    @Test func `whose text fits into no payload is refused, and its plan says so`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 4)
            let words = ["--var", "words=\(String(repeating: "so ", count: 1_400))"]
            let plan = try place.fanfare(["plan", "note"] + words)
            let page = page(plan)
            #expect(
                plan.status == 3 && page.contains("none of the 4 is sent; shorten the text (payload_too_large)"),
                "\(plan.output)")
            #expect(
                page.contains("No device all 4 devices that the audience selects are left out: payload_too_large 4"))
            #expect(page.contains("every text is over Apple's limit of 4,096 bytes"), "\(plan.output)")
            #expect(!page.contains("device fields of"))
            let json = try place.fanfare(["plan", "note", "--json"] + words).output
            #expect(json.contains(#""reason" : "all_left_out""#))
            let run = try place.fanfare(["run", "note", "--yes"] + words)
            #expect(run.status == 3 && run.errors.contains("every text is over Apple's limit"), "\(run.errors)")
            #expect(place.simulator.counts().requests == 0)
        }
    }
}
