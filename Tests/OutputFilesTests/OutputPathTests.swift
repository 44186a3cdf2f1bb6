import Foundation
import OutputFiles
import TestSupport
import Testing

/// Every kind of thing that a person may name as an output. Devices are private nodes in a temporary folder.
struct OutputPathTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func write(_ text: String, to path: String, _ privacy: OutputPath.Privacy = .asFound, isWhole: Bool = true)
        throws
    {
        let writer = try OutputPath(path).open(privacy, isWhole: isWhole)
        try writer.write(text.utf8)
        try writer.finish()
    }

    private func facts(_ path: String) throws -> stat {
        var facts = stat()
        try #require(lstat(path, &facts) == 0, "\(path)")
        return facts
    }

    private func mode(_ path: String) throws -> mode_t { try facts(path).st_mode & 0o7777 }

    /// Nothing else is left in the folder.
    private func expectOnly(_ names: String...) throws {
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == names.sorted())
    }

    @Test(arguments: [true, false]) func `a new file is its owner's, whatever the umask`(isWhole: Bool) throws {
        try write("a", to: folder.file("new"), isWhole: isWhole)
        #expect(try folder.read("new") == "a")
        #expect(try mode(folder.file("new")) == 0o600)
        try expectOnly("new")
    }

    @Test(arguments: [true, false]) func `a file keeps its mode, and shorter content leaves nothing of the old`(
        isWhole: Bool
    ) throws {
        let path = try folder.write("a long old text", to: "old")
        #expect(chmod(path, 0o644) == 0)
        try write("new", to: path, isWhole: isWhole)
        #expect(try folder.read("old") == "new")
        #expect(try mode(path) == 0o644)
        try expectOnly("old")
    }

    /// The second draft is that of a living writer. A name that is not a draft's stays.
    @Test func `a draft whose writer was killed is removed by the next writer, and no other file`() throws {
        for name in [".out.1f.part", ".out.1f.part-journal", ".out.new.part", ".out.2b.part.1f.part", "out.part"] {
            try folder.write("old", to: name)
        }
        let living = try OutputPath(folder.file("out")).open()
        try living.write("living".utf8)
        try write("whole", to: folder.file("out"))
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.count { $0.hasPrefix(".out.") } == 3 && !names.contains { $0.hasPrefix(".out.1f.part") })
        #expect(names.contains(".out.new.part") && names.contains("out.part"))
        #expect(throws: OutputFault.self) { try living.finish() }
        #expect(try folder.read("out") == "whole")
    }

    @Test(.enabled(if: getuid() == 0)) func `a file keeps its owner and group`() throws {
        let path = try folder.write("old", to: "old")
        #expect(chown(path, 65_534, 65_533) == 0)
        try write("new", to: path)
        #expect(try facts(path).st_uid == 65_534 && facts(path).st_gid == 65_533)
        #expect(try folder.read("old") == "new")
    }

    @Test func `a file with tokens is closed to others, and its group keeps its rights`() throws {
        for isWhole in [true, false] {
            let path = try folder.write("old", to: "old")
            #expect(chmod(path, 0o664) == 0)
            try write("new", to: path, .closedToOthers, isWhole: isWhole)
            #expect(try mode(path) == 0o660)
        }
    }

    @Test(arguments: [true, false]) func `links are followed, also those that lead nowhere yet`(isWhole: Bool) throws {
        try folder.write("old", to: "far/target")
        for (name, goal) in [("near", "far/target"), ("second", "near"), ("dangling", "far/new")] {
            try FileManager.default.createSymbolicLink(atPath: folder.file(name), withDestinationPath: goal)
        }
        try write("one", to: folder.file("second"), isWhole: isWhole)
        #expect(try folder.read("far/target") == "one")
        try write("two", to: folder.file("dangling"), isWhole: isWhole)
        #expect(try folder.read("far/new") == "two")
        for name in ["near", "second", "dangling"] {
            #expect(try facts(folder.file(name)).st_mode & S_IFMT == S_IFLNK)
        }
        try expectOnly("far", "near", "second", "dangling")
        let round = folder.file("round")
        try FileManager.default.createSymbolicLink(atPath: round, withDestinationPath: "round")
        #expect(throws: OutputFault.self) { try OutputPath(round).open() }
    }

    @Test(.enabled(if: getuid() == 0), arguments: [true, false]) func `a device is written through and stays`(
        isWhole: Bool
    ) throws {
        // The device of /dev/null, by another name.
        let path = folder.file("null")
        try #require(mknod(path, S_IFCHR | 0o666, 0x103) == 0)
        #expect(chmod(path, 0o666) == 0)
        let before = try facts(path)
        try write("text", to: path, .closedToOthers, isWhole: isWhole)
        let writer = try OutputPath(path).open(isWhole: isWhole)
        writer.discard(isOurs: true)
        let after = try facts(path)
        #expect(after.st_ino == before.st_ino && after.st_rdev == before.st_rdev && after.st_mode == before.st_mode)
        try expectOnly("null")
        #expect(throws: OutputFault.self) { try OutputPath(path).adopt(try OutputPath(folder.file("draft")).draft()) }
        #expect(try facts(path).st_rdev == before.st_rdev)
    }

    @Test(arguments: [true, false]) func `a FIFO is written through and stays`(isWhole: Bool) throws {
        let path = folder.file("fifo")
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK)
        try #require(reader >= 0)
        defer { close(reader) }
        try write("text", to: path, isWhole: isWhole)
        var bytes = [UInt8](repeating: 0, count: 16)
        #expect(read(reader, &bytes, bytes.count) == 4)
        #expect(String(decoding: bytes.prefix(4), as: UTF8.self) == "text")
        #expect(try facts(path).st_mode & S_IFMT == S_IFIFO)
    }

    /// As `-o /dev/stdout >> file`: what the file holds already stays.
    @Test(arguments: ["/dev/fd/", "/proc/self/fd/"]) func `a descriptor is written where it stands`(prefix: String)
        throws
    {
        let path = try folder.write("begun, ", to: "out")
        let file = open(path, O_WRONLY | O_APPEND)
        try #require(file >= 0)
        try write("ended", to: "\(prefix)\(file)")
        #expect(close(file) == 0)
        #expect(try folder.read("out") == "begun, ended")
        try expectOnly("out")
    }

    @Test func `what is not finished leaves the file as it was, and nothing beside it`() throws {
        let path = try folder.write("old", to: "old")
        for target in [path, folder.file("new")] {
            let writer = try OutputPath(target).open()
            try writer.write("half".utf8)
            // Dropped here.
        }
        #expect(try folder.read("old") == "old")
        try expectOnly("old")
    }

    @Test func `files of others beside it are left alone`() throws {
        try folder.write("mine", to: "out.part")
        try write("text", to: folder.file("out"))
        #expect(try folder.read("out.part") == "mine")
        try expectOnly("out", "out.part")
    }

    @Test func `a file with two names changes under both`() throws {
        let path = try folder.write("old", to: "one")
        #expect(link(path, folder.file("two")) == 0)
        try write("new", to: path)
        #expect(try folder.read("two") == "new")
    }

    @Test func `what has taken the place meanwhile is not replaced`() throws {
        let path = folder.file("new")
        let writer = try OutputPath(path).open()
        try writer.write("ours".utf8)
        try folder.write("theirs", to: "new")
        #expect(throws: OutputFault.self) { try writer.finish() }
        #expect(try folder.read("new") == "theirs")
    }

    @Test func `only a file that we made is removed`() throws {
        let path = try folder.write("old", to: "old")
        try OutputPath(path).open(isWhole: false).discard()
        try OutputPath(folder.file("new")).open(isWhole: false).discard()
        try expectOnly("old")
        try OutputPath(path).open(isWhole: false).discard(isOurs: true)
        try expectOnly()
    }

    @Test func `a folder is refused`() throws {
        #expect { try OutputPath(folder.path).open() } throws: { ($0 as? OutputFault)?.code == EISDIR }
    }
}
