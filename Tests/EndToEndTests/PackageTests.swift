import APNs
import Foundation
import TestSupport
import Testing

/// The Debian package of a release build, in a Debian that has nothing else but what it depends on.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The Debian package` {
    private static let package = ProcessInfo.processInfo.environment["DEBIAN_PACKAGE"]
    static let isBuilt = package != nil
    static let hasLintian = FileManager.default.isExecutableFile(atPath: "/usr/bin/lintian")
    private static let leftOut: Comment = "no package was built, or this is not root; `.ci/run` does it: left out"

    private static func run(_ program: String, _ arguments: [String]) throws -> Program.Result {
        try Program.run(arguments, in: try TemporaryDirectory(), program: URL(fileURLWithPath: program))
    }

    @Test(.enabled(if: isBuilt && hasLintian, leftOut)) func `has no errors that lintian finds`() throws {
        let result = try Self.run("/usr/bin/lintian", ["--fail-on", "error", try #require(Self.package)])
        #expect(result.status == 0, "\(result.output)\(result.errors)")
    }

    @Test(.enabled(if: isBuilt && geteuid() == 0, leftOut))
    func `is installed, serves, is removed and purged, and leaves what people put in`() throws {
        let root = try Root(package: try #require(Self.package))
        let before = try root.files("etc")

        let installed = try root.run("dpkg", "--install", "/fanfare.deb")
        try #require(installed.status == 0, "\(installed.output)\(installed.errors)")
        let version = try root.run("dpkg-query", "--show", "--showformat=${Version}\n", "fanfare").output
        #expect(version.contains(#/^\d+\.\d+\.\d+/#))
        #expect(try root.run("fanfare", "--version").output == version)
        #expect(try root.read("etc/passwd").contains("\nfanfare:"))
        for file in [
            "etc/fanfare/fanfare.yaml", "lib/systemd/system/fanfare.service", "usr/share/man/man1/fanfare.1.gz",
            "usr/share/bash-completion/completions/fanfare", "usr/share/zsh/vendor-completions/_fanfare",
            "usr/share/fish/vendor_completions.d/fanfare.fish", "usr/share/fanfare/campaigns/new-podcast.yaml",
            "usr/share/doc/fanfare/copyright", "usr/share/doc/fanfare/runbook.md", "usr/share/doc/fanfare/README.md",
            "usr/share/doc/fanfare/Sending-Restart.md", "usr/share/fanfare/monitoring/alerts.yml",
            "usr/share/fanfare/monitoring/grafana.json", "usr/share/man/man5/fanfare.yaml.5.gz",
            "usr/share/man/man5/fanfare-campaign.5.gz", "usr/share/man/man5/fanfare-devices.5.gz",
        ] {
            #expect(FileManager.default.fileExists(atPath: root.path(file)), "\(file)")
        }
        let conffiles = try root.run("dpkg-query", "--show", "--showformat", "${Conffiles}", "fanfare").output
        #expect(conffiles.contains("/etc/fanfare/fanfare.yaml"))

        try serve(in: root)

        // A configuration that somebody has changed outlives the program.
        try root.write(try root.read("etc/fanfare/fanfare.yaml") + "# ours\n", to: "etc/fanfare/fanfare.yaml")
        let removed = try root.run("dpkg", "--remove", "fanfare")
        #expect(removed.status == 0, "\(removed.errors)")
        #expect(!FileManager.default.fileExists(atPath: root.path("usr/bin/fanfare")))
        #expect(try root.read("etc/fanfare/fanfare.yaml").hasSuffix("# ours\n"))

        let purged = try root.run("dpkg", "--purge", "fanfare")
        #expect(purged.status == 0, "\(purged.errors)")
        #expect(purged.output.contains("/var/lib/fanfare is not empty and was kept"), "\(purged.output)")
        #expect(FileManager.default.fileExists(atPath: root.path("var/lib/fanfare/fanfare.sqlite")))
        #expect(!FileManager.default.fileExists(atPath: root.path("etc/fanfare/fanfare.yaml")))
        #expect(FileManager.default.fileExists(atPath: root.path("etc/fanfare/keys/AuthKey_ABC123DEFG.p8")))
        // The user stays, as Debian wants it: files of theirs may be left.
        let left = try root.files("etc").subtracting(before)
            .filter { ![".pwd.lock", "passwd", "group", "shadow", "gshadow"].contains($0.prefix { $0 != "-" }) }
        #expect(left == ["fanfare", "fanfare/keys", "fanfare/keys/AuthKey_ABC123DEFG.p8"], "\(left.sorted())")
    }

    /// The service's command, as its unit has it, with the folder and the keys that systemd would hand to it.
    private func serve(in root: Root) throws {
        try root.write(try SigningKey.generatedPEM(), to: "etc/fanfare/keys/AuthKey_ABC123DEFG.p8")
        let service = try root.read("lib/systemd/system/fanfare.service")
        let command = try #require(service.firstMatch(of: /\nExecStart=(.+)\n/)).1.split(separator: " ").map(
            String.init)
        let prepared = try root.run(
            "sh", "-c",
            """
            install -d -m 700 -o fanfare -g fanfare /var/lib/fanfare /run/handed
            install -m 400 -o fanfare /etc/fanfare/keys/AuthKey_ABC123DEFG.p8 /run/handed/keys_AuthKey_ABC123DEFG.p8
            """)
        try #require(prepared.status == 0, "\(prepared.errors)")
        let manager = try NoticeSocket(isAbstract: true)
        let running = try RunningProgram(
            root.arguments(
                ["setpriv", "--reuid=fanfare", "--regid=fanfare", "--init-groups"] + command),
            in: root.folder,
            environment: [
                "NOTIFY_SOCKET": manager.name, "CREDENTIALS_DIRECTORY": "/run/handed",
                "FANFARE_HTTP_LISTEN": "127.0.0.1:0",
            ],
            program: Root.program)
        let notices = try manager.notices(through: "READY=1")
        #expect(!notices.isEmpty)
        try running.wait { running.errors.contains("address=") }
        let address = try #require(running.errors.firstMatch(of: /address=(127\.0\.0\.1:\d+)/)).1
        for path in ["/healthz", "/sign-in", "/", "/api/v1/runs"] {
            #expect(try !LocalPage.text("http://\(address)\(path)").isEmpty, "\(path)")
        }
        running.signal(SIGTERM)
        let end = try running.finish()
        #expect(end.status == 0, "\(end.errors)")
    }
}

/// A root of its own, made of packages that are on this machine. Its processes see its files alone.
private final class Root {
    static let program = URL(fileURLWithPath: "/usr/bin/unshare")

    let folder: TemporaryDirectory

    init(package: String) throws {
        folder = try TemporaryDirectory()
        let made = try Program.run(
            [Installation.root.appending(path: ".ci/empty-root").path, path(""), package], in: folder,
            program: URL(fileURLWithPath: "/bin/bash"))
        try #require(made.status == 0, "\(made.output)\(made.errors)")
        try FileManager.default.copyItem(atPath: package, toPath: path("fanfare.deb"))
    }

    func path(_ name: String) -> String { "\(folder.path)/root/\(name)" }

    func read(_ name: String) throws -> String { try folder.read("root/\(name)") }

    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
    }

    func files(_ name: String) throws -> Set<String> {
        Set(try FileManager.default.subpathsOfDirectory(atPath: path(name)))
    }

    /// What is mounted is so for this command alone, which becomes the one that is asked for.
    func arguments(_ command: [String]) -> [String] {
        let inside = """
            mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" "$@"
            """
        return ["--mount", "--propagation", "private", "sh", "-c", inside, path("")] + command
    }

    func run(_ command: String...) throws -> Program.Result {
        try Program.run(
            arguments(command), in: folder,
            environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"],
            program: Self.program)
    }
}
