import Campaigns
import GRDB
import Model
import SQLiteStore
import SendingScene
import Store
import Testing

@testable import Web

/// A run whose row cannot be read is left out of lists. The lists say so.
@Suite(.timeLimit(.minutes(10))) struct `A run that cannot be read` {
    /// Two runs, the first with a definition that cannot be read.
    private static func spoiled(_ scene: WebScene) async throws -> (odd: Run, good: Run) {
        let definition = try scene.sending.definition()
        let odd = try await scene.sending.start(definition, occurrence: "odd")
        let good = try await scene.sending.start(definition, occurrence: "good")
        try await spoil(scene, "id = \(odd.id)")
        return (odd, good)
    }

    /// As another program would.
    private static func spoil(_ scene: WebScene, _ which: String) async throws {
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(30)
        let queue = try DatabaseQueue(path: scene.store.path, configuration: configuration)
        try await queue.write { try $0.execute(sql: "UPDATE run SET definition = '{' WHERE \(which)") }
        try queue.close()
    }

    @Test func `is named above the list of runs, which shows all others`() async throws {
        try await WebScene.with { scene in
            #expect(try await !scene.page("/", as: .viewer).text.contains("cannot be read"))
            let (odd, good) = try await Self.spoiled(scene)
            let page = try await scene.page("/", as: .viewer)
            #expect(page.status == 200)
            #expect(page.text.contains("1 run cannot be read: #\(odd.id) (c odd)."), "\(page.text)")
            #expect(page.text.contains(#"<a href="/runs/\#(good.id)">c</a>"#))
            #expect(!page.text.contains(#"<a href="/runs/\#(odd.id)">"#))
        }
    }

    @Test func `is named on the first page of the API's list, where the filter does not leave it out`() async throws {
        try await WebScene.with { scene in
            let (odd, good) = try await Self.spoiled(scene)
            let first: RunPageResult = try await scene.api("GET", "/runs", as: .viewer).result()
            #expect(first.runs.map(\.run) == [good.id])
            #expect(first.unreadable?.map(\.run) == [odd.id])
            #expect(first.unreadable?.first?.message.contains("run \(odd.id) cannot be read") == true)
            for (query, isNamed) in [
                ("campaign=c", true), ("state=scheduled", true), ("campaign=other", false), ("state=finished", false),
                ("cursor=\(PageCursor.text(good.id))", false),
            ] {
                let page: RunPageResult = try await scene.api("GET", "/runs?\(query)", as: .viewer).result()
                #expect((page.unreadable != nil) == isNamed, "\(query)")
            }
        }
    }

    /// The row does not say whose it is.
    @Test func `is named to no caller of one app`() async throws {
        try await WebScene.with { scene in
            let (_, good) = try await Self.spoiled(scene)
            let headers = try await scene.bearer(.viewer, topic: PipelineScene.topic)
            let page: RunPageResult = try await scene.api("GET", "/runs", headers: headers).result()
            #expect(page.runs.map(\.run) == [good.id] && page.unreadable == nil)
        }
    }

    @Test func `among many is counted, and the latest are named`() async throws {
        try await WebScene.with { scene in
            let definition = try scene.sending.definition()
            for number in 1...12 { _ = try await scene.sending.start(definition, occurrence: "o\(number)") }
            try await Self.spoil(scene, "true")
            let text = try await scene.page("/", as: .viewer).text
            #expect(text.contains("12 runs cannot be read: #12 (c o12), #11 (c o11)"), "\(text)")
            #expect(text.contains("#3 (c o3), and 2 earlier ones."))
        }
    }
}
