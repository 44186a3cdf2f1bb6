import Foundation
import Model
import TestSupport
import Testing

@testable import Campaigns

/// Files that belong together are written and read together.
@Suite(.timeLimit(.minutes(10)))
struct AtomicFileTests {
    @Test func `a reader sees all texts of a write or none`() async throws {
        let folder = try TemporaryDirectory()
        let paths = ["a.yaml", "b.yaml"].map(folder.file)
        for path in paths { #expect(try AtomicFile.write("0", to: path, expecting: .nothing) == nil) }
        let writer = Task.detached {
            for number in 1...200 {
                let texts = try paths.map {
                    AtomicFile.Replacement(path: $0, text: "\(number)", expected: try AtomicFile.entry(at: $0))
                }
                guard try AtomicFile.write(texts) == nil else { throw CancellationError() }
            }
        }
        var pairs: Set<[String]> = []
        while pairs.count < 20 {
            let pair = try AtomicFile.reading { try paths.map { try String(contentsOfFile: $0, encoding: .utf8) } }
            pairs.insert(pair)
            if pair[0] == "200" { break }
        }
        try await writer.value
        #expect(pairs.allSatisfy { $0[0] == $0[1] })
    }

    @Test func `a write of several texts that finds another entry writes none, and leaves nothing behind`() throws {
        let folder = try TemporaryDirectory()
        let (old, new) = (folder.file("old.yaml"), folder.file("new.yaml"))
        try folder.write("old", to: "old.yaml")
        try folder.write("taken", to: "new.yaml")
        let found = try AtomicFile.write([
            .init(path: old, text: "changed", expected: try AtomicFile.entry(at: old)),
            .init(path: new, text: "new", expected: .nothing),
        ])
        #expect(found?.path == new && found?.expected == .nothing)
        #expect(try folder.read("old.yaml") == "old")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["new.yaml", "old.yaml"])
    }

    @Test func `a text that cannot be saved leaves the others as they were`() throws {
        let folder = try TemporaryDirectory()
        let old = folder.file("old.yaml")
        try folder.write("old", to: "old.yaml")
        #expect(throws: Failure.self) {
            try AtomicFile.write([
                .init(path: old, text: "changed", expected: try AtomicFile.entry(at: old)),
                .init(path: "/sys/fanfare.yaml", text: "new", expected: .nothing),
            ])
        }
        #expect(try folder.read("old.yaml") == "old")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["old.yaml"])
    }

    /// The second link to one path fails, as if another process had made the file.
    @Test func `a text that cannot be put in place takes the others back`() throws {
        let folder = try TemporaryDirectory()
        let (old, new) = (folder.file("old.yaml"), folder.file("new.yaml"))
        try folder.write("old", to: "old.yaml")
        let found = try AtomicFile.write([
            .init(path: old, text: "changed", expected: try AtomicFile.entry(at: old)),
            .init(path: new, text: "first", expected: .nothing), .init(path: new, text: "second", expected: .nothing),
        ])
        #expect(found?.path == new)
        #expect(try folder.read("old.yaml") == "old")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["old.yaml"])
    }
}
