import APNsSimulator
import Foundation
import TestSupport
import Testing

/// What Fanfare writes is for its owner's eyes only, whatever the umask of whoever calls it.
@Suite(.ownThread, .timeLimit(.minutes(5))) struct `Files that are left behind` {
    @Test(arguments: ["0", "022"]) func `are readable by their owner only`(umask: String) async throws {
        try await OwnThread.run { try Scene().leaveEverything(umask) }
    }

    @Test func `that others could read are closed when the store is opened for writing, and that is said`() throws {
        try Scene().openAnExposedStore()
    }

    @Test func `close those that others could read, and leave those beside them alone`() throws {
        try Scene().writeOverExposedFiles()
    }

    @Test func `are no core dumps, whatever the limits and handlers of the machine are`() async throws {
        try await OwnThread.run { try Scene().crash() }
    }
}

/// An installation and what is found in its folder.
private final class Scene {
    private let place: Installation
    /// What the test wrote itself.
    private let own: Set<String>

    init() throws {
        place = try Installation(devices: 20)
        try place.folder.write("installation_id\ninstall-1\n", to: "fans.csv")
        try place.folder.write("token,environment,topic\nno token,production,\(Installation.topic)\n", to: "bad.csv")
        own = try Self.names(in: place.folder)
    }

    private static func names(in folder: TemporaryDirectory) throws -> Set<String> {
        Set(try FileManager.default.subpathsOfDirectory(atPath: folder.path))
    }

    /// Those of others than their owner, by name.
    private func exposed() throws -> [String: String] {
        var found: [String: String] = [:]
        for name in try Self.names(in: place.folder).subtracting(own) where !name.hasPrefix(".captured") {
            let facts = try FileManager.default.attributesOfItem(atPath: place.folder.file(name))
            let mode = try #require(facts[.posixPermissions] as? Int)
            if mode & 0o077 != 0 { found[name] = String(mode, radix: 8) }
        }
        return found
    }

    private static let shell = URL(fileURLWithPath: "/bin/sh")

    private static func words(_ umask: String, _ arguments: [String]) -> [String] {
        ["-c", "umask \(umask); exec \"$0\" \"$@\"", Program.url.path] + arguments
    }

    func leaveEverything(_ umask: String) throws {
        for (status, arguments) in [
            (0, ["devices", "import", "devices.csv"]), (65, ["devices", "import", "bad.csv"]),
            (0, ["segments", "import", "podcast-fans", "fans.csv"]), (0, ["backup", "b.sqlite"]),
            (0, ["devices", "export", "-o", "export.csv"]),
            (0, ["demo", "--devices", "200", "--dir", "demo"]),
        ] {
            let result = try Program.run(
                Self.words(umask, arguments), in: place.folder, program: Self.shell)
            #expect(Int(result.status) == status, "\(arguments): \(result.errors)")
        }
        let simulator = try RunningProgram(
            Self.words(umask, ["simulator", "--port", "0", "--sandbox-port", "0", "--log", "sim.jsonl"]),
            in: place.folder, program: Self.shell)
        try simulator.wait { simulator.output.contains("trust") }
        let daemon = try RunningProgram(Self.words(umask, ["serve"]), in: place.folder, program: Self.shell)
        try daemon.wait { daemon.errors.contains("files read") }
        #expect(try exposed() == [:])
        let left = try Self.names(in: place.folder).subtracting(own)
        for name in [
            "fanfare.sqlite", "fanfare.sqlite-wal", "fanfare.sqlite-shm", "b.sqlite", "bad.csv.rejects.csv",
            "export.csv", "sim.jsonl", "demo", "demo/fanfare.sqlite", "demo/devices.csv", "demo/simulator.jsonl",
            "demo/AuthKey_DEMOKEY001.p8", "demo/ca.pem",
        ] {
            #expect(left.contains(name), "\(name) is missing among \(left)")
        }
        for program in [daemon, simulator] {
            program.signal(SIGTERM)
            #expect(try program.finish().status == 0)
        }
    }

    func openAnExposedStore() throws {
        #expect(try place.fanfare("devices", "import", "devices.csv").status == 0)
        let store = place.folder.file("fanfare.sqlite")
        #expect(chmod(store, 0o644) == 0)
        let said = try place.fanfare("prune-outcomes")
        #expect(
            said.status == 0 && said.errors.contains("was accessible to other users (mode 644); it is 600 now"),
            "\(said.errors)")
        #expect(try exposed() == [:])
        #expect(try place.fanfare("status").errors == "")
        // A look at a store changes nothing of it.
        #expect(chmod(store, 0o640) == 0)
        #expect(try place.fanfare("verify", "--store", "fanfare.sqlite").status == 0)
        #expect(try exposed()["fanfare.sqlite"] == "640")
    }

    func writeOverExposedFiles() throws {
        let names = ["export.csv", "export.csv.part", "bad.csv.rejects.csv"]
        for name in names {
            try place.folder.write("old", to: name)
            #expect(chmod(place.folder.file(name), 0o646) == 0)
        }
        #expect(try place.fanfare("devices", "import", "devices.csv").status == 0)
        #expect(try place.fanfare("devices", "import", "bad.csv").status == 65)
        #expect(try place.fanfare("devices", "export", "-o", "export.csv").status == 0)
        #expect(try exposed() == ["export.csv.part": "646", "export.csv": "640", "bad.csv.rejects.csv": "640"])
        #expect(try place.folder.read("export.csv.part") == "old")
        #expect(try place.folder.read("export.csv").contains(place.tokens[3]))
        #expect(try place.folder.read("bad.csv.rejects.csv").hasPrefix("line,"))
    }

    func crash() throws {
        let daemon = try RunningProgram(
            ["-c", "ulimit -c unlimited; exec \"$0\" serve --create", Program.url.path], in: place.folder,
            // The language's own backtrace of a crash takes its time.
            environment: ["SWIFT_BACKTRACE": "enable=no"], program: Self.shell)
        try daemon.wait { daemon.errors.contains("files read") }
        let process = "/proc/\(daemon.pid)"
        let limits = try String(contentsOfFile: "\(process)/limits", encoding: .utf8)
        let core = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
        #expect(core.split(separator: " ").suffix(3) == ["0", "0", "bytes"], "\(core)")
        // What a handler would be given: nothing of the memory.
        let filter = try String(contentsOfFile: "\(process)/coredump_filter", encoding: .utf8)
        #expect(Int(filter.trimmingCharacters(in: .whitespacesAndNewlines), radix: 16) == 0)
        daemon.signal(SIGABRT)
        #expect(try daemon.finish().status == SIGABRT)
        let left = try Self.names(in: place.folder).filter { $0.hasPrefix("core") }
        #expect(left.isEmpty)
    }
}
