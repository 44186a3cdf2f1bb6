import Foundation
import TestSupport
import Testing

/// The README's walk through, typed word for word into a shell beside a demo that stays up.
@Suite(.ownThread, .timeLimit(.minutes(20))) struct `The walk through` {
    @Test func `does and prints what the README shows`() throws {
        let text = try String(contentsOf: Installation.root.appending(path: "README.md"), encoding: .utf8)
        let walk = try ConsoleWalk(text)
        try #require(walk.steps.count >= 10)
        let demo = try DemoWithPages(stays: true)
        try walk.type(in: demo.folder.url.appending(path: "demo"))
        try demo.stop()
    }
}
