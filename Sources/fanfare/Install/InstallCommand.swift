import ArgumentParser
import Campaigns
import Foundation
import Model
import OutputFiles
import PostgresStore

struct InstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Install this program, its manual page, completions, systemd units and examples.",
        discussion: """
            Existing files are replaced, except a configuration, which is kept. If the configuration names a database \
            as the store, the services start after postgresql.service; every machine that sends has the same units and \
            the same configuration, and its own database password in keys/pgpass beside it, which only root can \
            read.
            Configuration goes to /etc/fanfare; with a prefix other than /usr and /usr/local, to PREFIX/etc/fanfare.
            With --postgres the command installs nothing: it prints the SQL by which an administrator of the store's \
            database creates the roles of the store and grants their rights. Run it once before the store is created, \
            and again after that and after each upgrade: fanfare install --postgres | psql -d DATABASE
            """)

    @Option(help: "The installation prefix.", completion: .directory) var prefix = "/usr/local"
    @Option(help: "A folder to put before every path, for building a package.", completion: .directory)
    var root = ""
    @Flag(help: "Print the SQL for the administrator of a store on PostgreSQL, and do nothing else.")
    var postgres = false
    @Option(help: "With --postgres: the role that creates the store and sends from it.") var owner = "fanfare"
    @Option(help: "With --postgres: the role that may only read it.") var reader = "fanfare_reader"
    @Option(help: "With --postgres: the schema of the store's tables.") var schema = "public"

    func validate() throws {
        guard prefix.hasPrefix("/"), !prefix.contains(where: { $0.isWhitespace || $0 == "%" }) else {
            throw ValidationError("--prefix \(prefix): give an absolute path without spaces")
        }
    }

    func run() throws {
        guard !postgres else {
            return Console.print(AdministratorSQL(owner: owner, reader: reader, schema: schema).text)
        }
        var layout = InstallLayout(prefix: Self.withoutSlash(prefix))
        let known = ConfigurationSource(named: staged("\(layout.settings)/fanfare.yaml"), environment: [:])
        layout.hasDatabase = known.readIfRight().map { StoreAddress($0.store).isURL } ?? false
        do {
            for folder in layout.folders { try make(folder.path, mode: folder.mode) }
            try installBinary(layout.binary)
            for file in try layout.files { try write(file) }
        } catch let error as CocoaError {
            throw Failure(
                .configuration,
                "cannot write \(error.filePath ?? prefix): \(error.localizedDescription); run it as root, or name another "
                    + "--prefix")
        }
        Console.print(next(layout))
    }

    private func make(_ path: String, mode: Int) throws {
        let path = staged(path)
        guard !FileManager.default.fileExists(atPath: path) else { return }
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: mode])
    }

    private func write(_ file: InstallLayout.File) throws {
        let path = staged(file.path)
        if file.isTheirs, FileManager.default.fileExists(atPath: path) { return Console.print("kept      \(path)") }
        try make((file.path as NSString).deletingLastPathComponent, mode: 0o755)
        let output = try OutputFile(path, mode: 0o644)
        try output.write(file.text)
        try output.finish()
        Console.print("installed \(path)")
    }

    /// Copies this program to a draft beside the destination, and then renames it. The installed program may be
    /// running.
    private func installBinary(_ binary: String) throws {
        let path = staged(binary)
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        guard own != URL(fileURLWithPath: path).resolvingSymlinksInPath() else {
            return Console.print("kept      \(path), which is this program")
        }
        try make((binary as NSString).deletingLastPathComponent, mode: 0o755)
        let target = OutputPath(path)
        do {
            guard try target.entry() != .stream else { throw Failure(.cannotMake, "\(path) is not a file; remove it") }
            let fresh = try target.draft()
            do {
                try fresh.copy(own.path)
                try target.adopt(fresh, mode: 0o755)
            } catch {
                fresh.remove()
                throw error
            }
        } catch let fault as OutputFault {
            throw Failure(.cannotMake, "cannot write \(path): \(fault); run it as root, or name another --prefix")
        }
        Console.print("installed \(path)")
    }

    private func staged(_ path: String) -> String { Self.withoutSlash(root) + path }

    private static func withoutSlash(_ path: String) -> String {
        path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    /// Returns the additional instruction for a store in a database.
    private func password(_ layout: InstallLayout) -> String {
        "\n  put HOST:PORT:DATABASE:USER:PASSWORD of the database into \(layout.settings)/keys/pgpass (chmod 600)"
    }

    private func next(_ layout: InstallLayout) -> String {
        """

        Next:
          systemd-sysusers && systemctl daemon-reload       # creates the user of the services
          put the signing key into \(layout.settings)/keys, your topic and ids into \(layout.settings)/fanfare.yaml,
          and campaigns and templates beside it; \(layout.examples) has examples\(layout.hasDatabase ? password(layout) : "")
          fanfare validate --config \(layout.settings)/fanfare.yaml
          systemctl enable --now fanfare                    # the daemon, or for one campaign:
          systemctl enable --now fanfare-run@CAMPAIGN.timer
          alerts for Prometheus and a dashboard for Grafana are in \(layout.examples)/monitoring,
          and \(layout.prefix)/share/doc/fanfare/runbook.md says what to do about each alert
        """
    }
}

extension CocoaError {
    fileprivate var filePath: String? { userInfo[NSFilePathErrorKey] as? String }
}

/// The file locations of an installation.
struct InstallLayout {
    /// The prefix, such as `/usr/local`, without a slash at the end.
    var prefix: String
    /// Whether the existing configuration names a database, which may be on this machine.
    var hasDatabase = false

    var binary: String { "\(prefix)/bin/fanfare" }
    var units: String { "\(prefix)/lib/systemd/system" }
    var sysusers: String { "\(prefix)/lib/sysusers.d" }
    var examples: String { "\(prefix)/share/fanfare" }
    /// The folder of the configuration. The system's prefixes share one, and other prefixes have their own.
    var settings: String { ["/usr", "/usr/local"].contains(prefix) ? "/etc/fanfare" : "\(prefix)/etc/fanfare" }

    struct File {
        var path: String
        var text: String
        /// Whether an existing file is kept, because operators edit it.
        var isTheirs = false
    }

    var files: [File] {
        get throws {
            system + [
                File(path: "\(settings)/fanfare.yaml", text: located("configuration.yaml"), isTheirs: true)
            ]
                + (try shell) + monitoring
                + ExampleFiles.all.map { File(path: "\(examples)/\($0.name)", text: $0.text) }
        }
    }

    /// The files for systemd.
    private var system: [File] {
        [
            File(path: "\(units)/fanfare.service", text: located("fanfare.service")),
            File(path: "\(units)/fanfare-run@.service", text: located("fanfare-run.service")),
            File(path: "\(units)/fanfare-resume@.service", text: located("fanfare-resume.service")),
            File(path: "\(units)/fanfare-run@.timer", text: located("fanfare-run.timer")),
            File(path: "\(units)/fanfare-backup.service", text: located("fanfare-backup.service")),
            File(path: "\(units)/fanfare-backup.timer", text: located("fanfare-backup.timer")),
            File(path: "\(sysusers)/fanfare.conf", text: located("fanfare.sysusers")),
        ]
    }

    /// The files for Prometheus and Grafana, and the runbook.
    private var monitoring: [File] {
        [
            File(path: "\(examples)/monitoring/alerts.yml", text: located("alerts.yml")),
            File(path: "\(examples)/monitoring/grafana.json", text: located("grafana.json")),
            File(path: "\(prefix)/share/doc/fanfare/runbook.md", text: located("runbook.md")),
        ]
    }

    /// The manual pages, and the completions that shells find automatically.
    private var shell: [File] {
        get throws {
            // Debian's zsh has a separate folder for completions of packages.
            let zsh = prefix == "/usr" ? "vendor-completions" : "site-functions"
            let formats = FileManualPages(settings: settings).all.map {
                File(path: "\(prefix)/share/man/man5/\($0.name).5", text: $0.text)
            }
            return formats + [
                File(path: "\(prefix)/share/man/man1/fanfare.1", text: try ManualPage(settings: settings).text),
                File(
                    path: "\(prefix)/share/bash-completion/completions/fanfare",
                    text: Fanfare.completionScript(for: .bash)),
                File(path: "\(prefix)/share/zsh/\(zsh)/_fanfare", text: Fanfare.completionScript(for: .zsh)),
                File(
                    path: "\(prefix)/share/fish/vendor_completions.d/fanfare.fish",
                    text: Fanfare.completionScript(for: .fish)),
            ]
        }
    }

    /// The folders to create if they are missing. The daemon starts campaigns from here, so the examples are installed
    /// elsewhere.
    var folders: [(path: String, mode: Int)] {
        [
            (settings, 0o755), ("\(settings)/campaigns", 0o755), ("\(settings)/templates", 0o755),
            ("\(settings)/keys", 0o700),
        ]
    }

    /// Returns a packaged file with the paths of this installation in place of `/usr` and `/etc`.
    private func located(_ file: String) -> String {
        let text = EmbeddedFile.text(file)
            .replacing("/usr/bin/fanfare", with: binary).replacing("/etc/fanfare", with: settings)
            .replacing("/usr/share/", with: "\(prefix)/share/")
        // systemd ignores the name if there is no such unit.
        return hasDatabase ? text.replacing("time-sync.target", with: "time-sync.target postgresql.service") : text
    }
}

/// The campaigns and templates that come with Fanfare.
enum ExampleFiles {
    static var all: [(name: String, text: String)] {
        ["campaign", "template"].flatMap { kind in
            ["new-podcast", "breaking-news", "refresh-episodes"].map { name in
                ("\(kind)s/\(name).yaml", EmbeddedFile.text("\(kind)-\(name).yaml"))
            }
        }
    }
}
