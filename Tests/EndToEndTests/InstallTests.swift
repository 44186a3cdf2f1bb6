import APNsSimulator
import CampaignFiles
import Foundation
import TestSupport
import Testing

/// An installation under a temporary prefix, looked at with systemd's own tools.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `An installation` {
    static let analyzer = "/usr/bin/systemd-analyze"
    static let hasAnalyzer = FileManager.default.isExecutableFile(atPath: analyzer)

    private static let units = [
        "fanfare.service", "fanfare-run@.service", "fanfare-resume@.service", "fanfare-run@.timer",
        "fanfare-backup.service",
        "fanfare-backup.timer",
    ]

    /// Only looked at, so one is enough.
    private static let shared = Result { try installed() }

    private static func installed() throws -> (folder: TemporaryDirectory, prefix: String) {
        let folder = try TemporaryDirectory()
        let prefix = "\(folder.path)/usr"
        let result = try Program.run(["install", "--prefix", prefix + "/"], in: folder)
        try #require(result.status == 0, "\(result.errors)")
        return (folder, prefix)
    }

    private func analyze(_ arguments: String..., in folder: TemporaryDirectory) throws -> Program.Result {
        try Program.run(arguments, in: folder, program: URL(fileURLWithPath: Self.analyzer))
    }

    @Test(.enabled(if: hasAnalyzer, "systemd-analyze is not on this machine"))
    func `has units that systemd finds right`() throws {
        let (folder, prefix) = try Self.shared.get()
        for unit in Self.units {
            let result = try analyze("verify", "\(prefix)/lib/systemd/system/\(unit)", in: folder)
            let words = (result.output + result.errors).split(separator: "\n").filter { $0.contains("fanfare") }
            #expect(result.status == 0 && words.isEmpty, "\(unit): \(words)")
        }
    }

    @Test(
        .enabled(if: hasAnalyzer, "systemd-analyze is not on this machine"),
        arguments: ["fanfare.service", "fanfare-run@.service", "fanfare-resume@.service", "fanfare-backup.service"])
    func `has services with an exposure under 2`(unit: String) throws {
        let (folder, prefix) = try Self.shared.get()
        let result = try analyze(
            "security", "--offline=true", "--threshold=20", "--no-pager", "\(prefix)/lib/systemd/system/\(unit)",
            in: folder)
        #expect(result.status == 0, "\(result.output.suffix(200))\(result.errors)")
        #expect(result.output.contains("Overall exposure level"))
    }

    /// Where the configuration allows editing in the browser, the service can write where it says the files are.
    @Test func `has a service that may write in the configured folders`() throws {
        let (_, prefix) = try Self.shared.get()
        let unit = try String(contentsOfFile: "\(prefix)/lib/systemd/system/fanfare.service", encoding: .utf8)
        let configuration = try String(contentsOfFile: "\(prefix)/etc/fanfare/fanfare.yaml", encoding: .utf8)
        let writable = unit.split(separator: "\n").filter { $0.hasPrefix("ReadWritePaths=") }
            .flatMap { $0.dropFirst("ReadWritePaths=".count).split(separator: " ") }
        for key in ["campaigns", "templates"] {
            let path = try #require(
                configuration.split(separator: "\n").first { $0.hasPrefix("\(key): ") }?.dropFirst(key.count + 2))
            #expect(writable.contains("-\(path)"), "\(path) is not among \(writable)")
        }
    }

    @Test func `runs from its place, with a configuration that is right`() throws {
        let (folder, prefix) = try Self.installed()
        let program = URL(fileURLWithPath: "\(prefix)/bin/fanfare")
        let settings = "\(prefix)/etc/fanfare"
        for name in ["campaigns", "templates"] {
            try FileManager.default.removeItem(atPath: "\(settings)/\(name)")
            try FileManager.default.copyItem(atPath: "\(prefix)/share/fanfare/\(name)", toPath: "\(settings)/\(name)")
        }
        let checked = try Program.run(
            ["validate", "--config", "\(settings)/fanfare.yaml"], in: folder, program: program)
        #expect(checked.status == 0, "\(checked.errors)")
        #expect(checked.output.contains("\(settings)/campaigns/new-podcast.yaml: ok"))
        let service = try folder.read("usr/lib/systemd/system/fanfare.service")
        #expect(service.contains("ExecStart=\(prefix)/bin/fanfare serve --create --config \(settings)/fanfare.yaml\n"))
        #expect(service.contains("LoadCredential=keys:\(settings)/keys\n"))
        let mode = try FileManager.default.attributesOfItem(atPath: "\(settings)/keys")[.posixPermissions] as? Int
        #expect(mode == 0o700)
    }

    /// What systemd starts at nine, after a failure and after a boot.
    @Test func `has units that make no new occurrence but by their timer, and stop for a person`() throws {
        let (folder, prefix) = try Self.shared.get()
        func unit(_ name: String) throws -> [String] {
            try folder.read("usr/lib/systemd/system/\(name)").split(separator: "\n").map(String.init)
        }
        let command = "ExecStart=\(prefix)/bin/fanfare run %i"
        let settings = "--yes --config \(prefix)/etc/fanfare/fanfare.yaml"
        let run = try unit("fanfare-run@.service")
        #expect(run.contains("\(command) \(settings) --occurrence-by ${OCCURRENCE_BY}"))
        #expect(run.contains("Environment=OCCURRENCE_BY=day"))
        let resume = try unit("fanfare-resume@.service")
        #expect(resume.contains("\(command) --unfinished \(settings)"))
        for lines in [run, resume] {
            #expect(lines.contains("RestartPreventExitStatus=3 64 65 66 70 73 74 76 77 78"))
            #expect(!lines.contains { $0.hasPrefix("[Install]") || $0.hasPrefix("WantedBy=") })
        }
        let sandbox = { (lines: [String]) in lines.drop { !$0.hasPrefix("User=") }.filter { !$0.hasPrefix("#") } }
        #expect(sandbox(run) == sandbox(resume))
        #expect(try unit("fanfare-run@.timer").contains("Wants=fanfare-resume@%i.service"))
    }

    @Test func `is renewed without touching the configuration`() throws {
        let (folder, prefix) = try Self.installed()
        try folder.write("mine", to: "usr/etc/fanfare/fanfare.yaml")
        try folder.write("old", to: "usr/lib/systemd/system/fanfare.service")
        let again = try Program.run(["install", "--prefix", prefix], in: folder)
        #expect(again.status == 0, "\(again.errors)")
        #expect(again.output.contains("kept      \(prefix)/etc/fanfare/fanfare.yaml"))
        #expect(try folder.read("usr/etc/fanfare/fanfare.yaml") == "mine")
        #expect(try folder.read("usr/lib/systemd/system/fanfare.service").contains("Type=notify"))
        let own = try Program.run(
            ["install", "--prefix", prefix], in: folder, program: URL(fileURLWithPath: "\(prefix)/bin/fanfare"))
        #expect(own.status == 0, "\(own.errors)")
        #expect(own.output.contains("which is this program"))
    }

    @Test func `starts after a database that its configuration names`() throws {
        let (folder, prefix) = try Self.installed()
        let unit = "usr/lib/systemd/system/fanfare.service"
        #expect(try !folder.read(unit).contains("postgresql"))
        let path = "usr/etc/fanfare/fanfare.yaml"
        try folder.write(
            try folder.read(path).replacing(
                "store: /var/lib/fanfare/fanfare.sqlite", with: "store: postgres://fanfare@/fanfare"), to: path)
        let again = try Program.run(["install", "--prefix", prefix], in: folder)
        #expect(again.status == 0 && again.output.contains("into \(prefix)/etc/fanfare/keys/pgpass (chmod 600)\n"))
        let text = try folder.read(unit)
        #expect(text.contains("After=network-online.target time-sync.target postgresql.service\n"))
        #expect(text.contains("StateDirectory=fanfare\n"))
    }

    @Test func `has manual pages for the files that people write, with every key and column`() throws {
        let (folder, _) = try Self.shared.get()
        func page(_ name: String) throws -> String { try folder.read("usr/share/man/man5/\(name).5") }
        let configuration = try page("fanfare.yaml")
        for key in [
            "store", "apps[].key_path", "http.listen", "log.format", "log.level", "apps[].silent_budget.window",
        ] {
            #expect(configuration.contains("\n.B \(key)\n"), "\(key)")
        }
        #expect(try page("fanfare-campaign").contains("\n.B audience\n"))
        #expect(try page("fanfare-template").contains("\n.TP\n"))
        for (name, isRequired) in DeviceColumns.all {
            #expect(
                try page("fanfare-devices").contains("\n.B \(name)\n" + (isRequired ? "Required. " : "")), "\(name)")
        }
        let man = URL(fileURLWithPath: "/usr/bin/man")
        guard FileManager.default.isExecutableFile(atPath: man.path) else { return }
        for name in ["fanfare.yaml", "fanfare-campaign", "fanfare-template", "fanfare-devices"] {
            let shown = try Program.run(
                ["--warnings", "-l", "\(folder.path)/usr/share/man/man5/\(name).5"], in: folder,
                environment: ["MANPAGER": "cat", "MANWIDTH": "100"], program: man)
            #expect(shown.status == 0 && shown.errors.isEmpty, "\(shown.errors.prefix(500))")
        }
    }

    /// Refused, libdispatch writes a line for each of its threads; allowed, it is refused by the kernel all the same.
    @Test(arguments: ["fanfare.service", "fanfare-run@.service", "fanfare-resume@.service", "fanfare-backup.service"])
    func `has services whose journal is not filled by libdispatch, and that are as closed as before`(unit: String)
        throws
    {
        let (folder, _) = try Self.shared.get()
        let text = try folder.read("usr/lib/systemd/system/\(unit)")
        #expect(text.contains("\nSystemCallFilter=~@privileged @resources\n"))
        #expect(text.contains("\nSystemCallFilter=~setpriority:0\n"))
        guard Self.hasAnalyzer else { return }
        let result = try analyze(
            "security", "--offline=true", "--threshold=13", "--no-pager",
            "\(folder.path)/usr/lib/systemd/system/\(unit)",
            in: folder)
        #expect(result.status == 0, "\(result.output.suffix(200))\(result.errors)")
    }

    /// What a second machine needs besides the same files: nothing but its password of the database.
    @Test(arguments: ["fanfare.service", "fanfare-run@.service", "fanfare-resume@.service"])
    func `has services that find the password of a database among the copies of the keys`(unit: String) throws {
        let (folder, prefix) = try Self.shared.get()
        let text = try folder.read("usr/lib/systemd/system/\(unit)")
        #expect(text.contains("LoadCredential=keys:\(prefix)/etc/fanfare/keys\n"))
        #expect(text.contains("Environment=PGPASSFILE=%d/keys_pgpass\n"))
        #expect(text.contains("After=network-online.target"))
    }

    @Test func `can be staged for a package with the paths of the system`() throws {
        let folder = try TemporaryDirectory()
        let result = try Program.run(["install", "--root", "\(folder.path)/stage", "--prefix", "/usr"], in: folder)
        #expect(result.status == 0, "\(result.errors)")
        let service = try folder.read("stage/usr/lib/systemd/system/fanfare.service")
        #expect(
            service
                == (try String(
                    contentsOf: Installation.root.appending(path: "systemd/fanfare.service"), encoding: .utf8)))
        #expect(try folder.read("stage/etc/fanfare/fanfare.yaml").contains("store: /var/lib/fanfare/fanfare.sqlite"))
        #expect(try folder.read("stage/usr/lib/sysusers.d/fanfare.conf").contains("\nu fanfare "))
    }

    @Test(arguments: ["fanfare.service", "fanfare-run@.service"])
    func `has services that may make the folder of the senders, which lies beside the store`(unit: String) throws {
        let systemd = Installation.root.appending(path: "systemd")
        let service = try String(contentsOf: systemd.appending(path: unit), encoding: .utf8)
        let settings = try String(contentsOf: systemd.appending(path: "fanfare.yaml"), encoding: .utf8)
        // All else is read-only to them.
        #expect(service.contains("\nProtectSystem=strict\n") && service.contains("\nStateDirectory=fanfare\n"))
        #expect(settings.contains("\nstore: /var/lib/fanfare/fanfare.sqlite"))
    }

    @Test func `says what to do where it may not write, or cannot`() throws {
        let folder = try TemporaryDirectory()
        try folder.write("", to: "file")
        let result = try Program.run(["install", "--prefix", "\(folder.path)/file"], in: folder)
        #expect(result.status == 78, "\(result.errors)")
        #expect(result.errors.contains("another --prefix"))
        #expect(try Program.run(["install", "--prefix", "here"], in: folder).status == 64)
    }

    @Test func `reads the keys that systemd hands over in place of the files`() throws {
        let place = try Installation(devices: 2)
        try place.importDevices()
        try place.folder.write(try place.folder.read("key.p8"), to: "handed/keys_AuthKey.p8")
        try place.configure(keyPath: "keys/AuthKey.p8")
        let arguments = ["run", "new-podcast", "--yes", "--occurrence", "a"] + Installation.words
        let alone = try Program.run(arguments, in: place.folder)
        #expect(alone.status == 78, "\(alone.errors)")
        let handed = try Program.run(
            arguments, in: place.folder, environment: ["CREDENTIALS_DIRECTORY": "\(place.folder.path)/handed"])
        #expect(handed.status == 0, "\(handed.errors)")
        #expect(place.simulator.counts().accepted == 2)
    }
}
