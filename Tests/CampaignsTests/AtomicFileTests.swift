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
            let pair = try AtomicFile.reading([folder.path]) {
                try paths.map { try String(contentsOfFile: $0, encoding: .utf8) }
            }
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

    /// The texts `old` and `new` become `a`. The first is in place, and the process has exited.
    private static func interrupted(_ folder: TemporaryDirectory) throws {
        try folder.write("old", to: "old.yaml")
        let texts = [
            AtomicFile.Replacement(
                path: folder.file("old.yaml"), text: "a", expected: try AtomicFile.entry(at: folder.file("old.yaml"))),
            .init(path: folder.file("new.yaml"), text: "a", expected: .nothing),
        ]
        let staged = texts.map { AtomicFile.Staged($0) }
        try AtomicFile.begin(staged)
        #expect(staged[0].replace())
        #expect(try folder.read("old.yaml") == "a")
        #expect(!FileManager.default.fileExists(atPath: texts[1].path))
    }

    @Test func `the record of a save goes before what is needed to undo it`() throws {
        let folder = try TemporaryDirectory()
        let names = ["old.yaml", "new.yaml"]
        for name in names { try folder.write("before", to: name) }
        let staged = try names.map { name in
            let path = folder.file(name)
            return AtomicFile.Staged(.init(path: path, text: "a", expected: try AtomicFile.entry(at: path)))
        }
        try AtomicFile.begin(staged)
        for one in staged { #expect(one.replace()) }
        // A folder in place of the record cannot be removed as a file can.
        let record = SaveIntent.path(in: folder.path)
        try FileManager.default.removeItem(atPath: record)
        try FileManager.default.createDirectory(atPath: record, withIntermediateDirectories: false)
        AtomicFile.end(staged)
        let kept = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".tmp") }
        #expect(kept.count == 2)
        try FileManager.default.removeItem(atPath: record)
        AtomicFile.end(staged)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == names.sorted())
        for name in names { #expect(try folder.read(name) == "a") }
    }

    @Test func `the next reader finishes a save that a crash interrupted`() throws {
        let folder = try TemporaryDirectory()
        try Self.interrupted(folder)
        let texts = try AtomicFile.reading([folder.path]) {
            try ["old.yaml", "new.yaml"].map { try String(contentsOfFile: folder.file($0), encoding: .utf8) }
        }
        #expect(texts == ["a", "a"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["new.yaml", "old.yaml"])
    }

    @Test func `the next writer finishes a save that a crash interrupted`() throws {
        let folder = try TemporaryDirectory()
        try Self.interrupted(folder)
        #expect(try AtomicFile.write("b", to: folder.file("other.yaml"), expecting: .nothing) == nil)
        #expect(try folder.read("new.yaml") == "a")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 3)
    }

    @Test func `an interrupted save is taken back if a file has changed since`() throws {
        let folder = try TemporaryDirectory()
        try Self.interrupted(folder)
        try folder.write("theirs", to: "new.yaml")
        try AtomicFile.reading([folder.path]) {}
        #expect(try folder.read("old.yaml") == "old" && folder.read("new.yaml") == "theirs")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 2)
    }

    @Test func `a record that names another folder moves nothing`() throws {
        let (folder, other) = (try TemporaryDirectory(), try TemporaryDirectory())
        try Self.interrupted(other)
        let record = SaveIntent.path(in: other.path)
        try FileManager.default.moveItem(atPath: record, toPath: SaveIntent.path(in: folder.path))
        #expect(throws: Failure.self) { try AtomicFile.reading([folder.path]) {} }
        #expect(try other.read("old.yaml") == "a")
        #expect(!FileManager.default.fileExists(atPath: other.file("new.yaml")))
    }

    @Test func `the drafts of a crashed writer go with the next write`() throws {
        let folder = try TemporaryDirectory()
        for name in [".a.yaml.17.tmp", ".a.txt.17.tmp", ".a.yaml.tmp"] { try folder.write("x", to: name) }
        #expect(try AtomicFile.write("b", to: folder.file("b.yaml"), expecting: .nothing) == nil)
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(left == [".a.txt.17.tmp", ".a.yaml.tmp", "b.yaml"])
    }

    /// A lock of another open file has the effect of another process.
    @Test func `another process that writes keeps readers and writers away`() throws {
        let folder = try TemporaryDirectory()
        try Self.interrupted(folder)
        let theirs = FolderLock([folder.path, folder.path + "/."], .exclusive)
        #expect(theirs.isHeld)
        #expect(throws: Failure.self) { try AtomicFile.reading([folder.path]) {} }
        #expect(throws: Failure.self) { try AtomicFile.write("b", to: folder.file("b.yaml"), expecting: .nothing) }
        #expect(!FileManager.default.fileExists(atPath: folder.file("new.yaml")))
        theirs.release()
        try AtomicFile.reading([folder.path]) {}
        #expect(try folder.read("new.yaml") == "a")
    }
}
