import APNsSimulator
import Foundation
import GRDB
import Model
import TestSupport
import Testing

/// Commands whose output a person sends to a device, a pipe, a link or a file of others.
@Suite(.ownThread, .timeLimit(.minutes(5))) struct `Output that a person names` {
    private func facts(_ path: String) throws -> stat {
        var facts = stat()
        try #require(lstat(path, &facts) == 0, "\(path)")
        return facts
    }

    /// An installation with a finished run.
    private func place() throws -> Installation {
        let place = try Installation()
        try place.importDevices()
        let run = try place.run("new-podcast")
        try #require(run.status == 0, "\(run.errors)")
        try place.folder.write("token,environment,topic\nno token,production,\(Installation.topic)\n", to: "bad.csv")
        return place
    }

    private static let commands: [(Int32, @Sendable (String) -> [String])] = [
        (0, { ["report", "1", "-o", $0] }), (0, { ["report", "1", "--format", "csv", "-o", $0] }),
        (0, { ["devices", "export", "-o", $0] }), (0, { ["devices", "import", "devices.csv", "--rejects", $0] }),
        (65, { ["devices", "import", "bad.csv", "--rejects", $0] }),
        (0, { ["segments", "import", "podcast-fans", "fans.csv", "--rejects", $0] }),
        (0, { ["backup", $0] }), (0, { ["backup", $0, "--force"] }),
    ]

    /// A node of the device of `/dev/null` in the test's folder, never the machine's own.
    @Test(.enabled(if: getuid() == 0)) func `is written through a device, which stays a device`() throws {
        let place = try place()
        let path = place.folder.file("null")
        try #require(mknod(path, S_IFCHR | 0o666, 0x103) == 0)
        #expect(chmod(path, 0o666) == 0)
        let before = try facts(path)
        try FileManager.default.createSymbolicLink(atPath: place.folder.file("link"), withDestinationPath: "null")
        for (status, words) in Self.commands {
            for name in ["null", "link"] {
                let result = try place.fanfare(words(name))
                #expect(result.status == status, "\(words(name)): \(result.errors)")
            }
        }
        let after = try facts(path)
        #expect(after.st_ino == before.st_ino && after.st_rdev == before.st_rdev && after.st_mode == before.st_mode)
        #expect(try facts(place.folder.file("link")).st_mode & S_IFMT == S_IFLNK)
    }

    @Test func `goes to standard output by its name, also a whole store`() throws {
        let place = try place()
        let report = try place.fanfare("report", "1", "-o", "/dev/stdout")
        let usual = try place.fanfare("report", "1").output
        #expect(report.status == 0 && report.output == usual, "\(report.errors)")
        let result = try Program.run(
            ["-c", "\"$0\" backup /dev/stdout > copy.sqlite", Program.url.path], in: place.folder,
            program: URL(filePath: "/bin/sh"))
        // The summary follows the copy, where nothing reads it.
        #expect(result.status == 0, "\(result.errors)")
        let verified = try place.fanfare("verify", "--store", "copy.sqlite")
        #expect(verified.status == 0, "\(verified.output)")
    }

    @Test func `on standard output that takes nothing exits with 74 and says so`() throws {
        let place = try place()
        for words in [
            ["tokens", "create", "x", "--role", "sender"], ["tokens", "list", "--json"], ["report", "1"],
            ["devices", "export"], ["--help"],
        ] {
            let result = try Program.run(
                ["-c", "exec \"$0\" \"$@\" > /dev/full", Program.url.path] + words, in: place.folder,
                program: URL(filePath: "/bin/sh"))
            #expect(result.status == 74, "\(words): \(result.errors)")
            #expect(result.errors.contains("cannot write to standard output: No space left on device"), "\(words)")
        }
        // A reader that has seen enough is no error, and an error of the command itself keeps its status.
        for (command, status) in [("tokens list | true", 0), ("tokens revoke nothing > /dev/full", 66)] {
            let result = try Program.run(
                ["-c", "set -o pipefail; trap '' PIPE; \"$0\" \(command)", Program.url.path], in: place.folder,
                program: URL(filePath: "/bin/bash"))
            #expect(result.status == status, "\(command): \(result.errors)")
        }
    }

    /// The command starts when its reader has closed the pipe. SIGPIPE is ignored, as under systemd.
    @Test func `ends when its reader does: rows with 74, and a report for a person with 0`() throws {
        let place = try place()
        for (words, status) in [
            ("devices export", 74), ("devices export -o /dev/stdout", 74), ("report 1 --format csv", 74),
            ("report 1 --format csv --table reasons -o /dev/stdout", 74), ("report 1", 0),
            ("report 1 -o /dev/stdout", 0),
            ("report 1 --format html", 0),
        ] {
            let result = try Program.run(
                [
                    "-c",
                    "trap '' PIPE; rm -f go; mkfifo go; { cat go; \"$0\" \(words); echo $? > status; } | { exec <&-; : > go; }",
                    Program.url.path,
                ], in: place.folder, program: URL(filePath: "/bin/bash"))
            #expect(
                try place.folder.read("status") == "\(status)\n" && result.errors == "", "\(words): \(result.errors)")
        }
        // Each export is on record as begun, and has no number of devices.
        let audit = try place.fanfare("audit", "--kind", "devices_exported").output
        #expect(audit.components(separatedBy: "devices_exported  begins").count == 3, "\(audit)")
        #expect(audit.components(separatedBy: "devices_exported").count == 3, "\(audit)")
    }

    @Test func `replaces the content behind a link, and a file keeps its mode`() throws {
        let place = try place()
        let path = try place.folder.write("old", to: "far/report.txt")
        #expect(chmod(path, 0o644) == 0)
        try FileManager.default.createSymbolicLink(
            atPath: place.folder.file("report.txt"), withDestinationPath: "far/report.txt")
        #expect(try place.fanfare("report", "1", "-o", "report.txt").status == 0)
        let usual = try place.fanfare("report", "1").output
        #expect(try place.folder.read("far/report.txt") == usual)
        #expect(try facts(place.folder.file("report.txt")).st_mode & S_IFMT == S_IFLNK)
        #expect(try facts(path).st_mode & 0o777 == 0o644)
        try FileManager.default.createSymbolicLink(
            atPath: place.folder.file("copy.sqlite"), withDestinationPath: "far/copy.sqlite")
        #expect(try place.fanfare("backup", "copy.sqlite").status == 0)
        #expect(try place.fanfare("backup", "copy.sqlite").status == 73)
        #expect(try place.fanfare("backup", "copy.sqlite", "--force").status == 0)
        #expect(try place.fanfare("verify", "--store", "far/copy.sqlite").status == 0)
        #expect(try facts(place.folder.file("copy.sqlite")).st_mode & S_IFMT == S_IFLNK)
    }

    @Test func `never replaces the store, and a folder is refused with 73`() throws {
        let place = try place()
        for words in [["report", "1", "-o"], ["devices", "export", "-o"]] {
            let refused = try place.fanfare(words + ["fanfare.sqlite"])
            #expect(refused.status == 73 && refused.errors.contains("is a database"), "\(refused.errors)")
            #expect(try place.fanfare(words + ["."]).status == 73)
            #expect(try place.fanfare(words + ["no/such/folder"]).status == 73)
        }
        #expect(try place.fanfare("verify").status == 0)
    }

    @Test func `of rejects: only a file that an import made is removed when no line is rejected`() throws {
        let place = try place()
        let import_ = { (words: [String]) in try place.fanfare(["devices", "import"] + words) }
        #expect(try import_(["bad.csv", "--rejects", "mine.csv"]).status == 65)
        #expect(try place.folder.read("mine.csv").hasPrefix("line,reason"))
        #expect(try import_(["devices.csv", "--rejects", "mine.csv"]).status == 0)
        #expect(!FileManager.default.fileExists(atPath: place.folder.file("mine.csv")))
        try place.folder.write("of another program\n", to: "theirs.csv")
        #expect(try import_(["devices.csv", "--rejects", "theirs.csv"]).status == 73)
        #expect(try place.folder.read("theirs.csv") == "of another program\n")
        // Nothing is rejected, so the default path need not be writable.
        try FileManager.default.createDirectory(
            atPath: place.folder.file("devices.csv.rejects.csv"), withIntermediateDirectories: false)
        #expect(try import_(["devices.csv"]).status == 0)
        #expect(try import_(["devices.csv", "--rejects", "campaigns"]).status == 73)
    }
}
