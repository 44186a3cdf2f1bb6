import CampaignFiles
import Foundation
package import Model
import Store

/// Checks the campaigns and templates, and the access rights of the files that control Fanfare.
struct FileChecks {
    private let configuration: Configuration
    private let configurationPath: String?
    private let environment: [String: String]

    init(_ configuration: Configuration, configurationPath: String?, environment: [String: String]) {
        self.configuration = configuration
        self.configurationPath = configurationPath
        self.environment = environment
    }

    private var folders: [String] { [configuration.campaigns, configuration.templates] }

    /// - Parameter values: the values that people gave for coming starts.
    func campaigns(_ values: StartValues) -> [Finding] {
        let missing = folders.filter { !FileManager.default.fileExists(atPath: $0) }
        guard missing.isEmpty else {
            return missing.map { .wrong(.files, "no folder \($0); create it, or change the configuration") }
        }
        let templates = configuration.templates
        let files = CheckFiles(
            configuration: configuration, templates: templates, configuredTemplates: { templates },
            environment: environment, values: values)
        do {
            let checked = try files.check(folders)
            let broken = checked.checks.count { !$0.isRight }
            guard broken == 0 else {
                return [
                    .wrong(
                        .files, "\(broken) of \(checked.checks.count) files have errors; `fanfare validate` lists them")
                ]
            }
            return [.ok(.files, "\(checked.checks.count) in \(folders.joined(separator: " and ")), all valid")]
        } catch let failure as Failure where failure.kind == .notFound {
            // `fanfare init` writes to the current folder, so it is no remedy for the service.
            let isService = configuration.campaigns == "/etc/fanfare/campaigns"
            let way =
                isService
                ? "copy an example from /usr/share/fanfare/campaigns"
                : "`fanfare init examples` writes one into a new folder"
            return [.warning(.files, "no campaign yet in \(configuration.campaigns); \(way)")]
        } catch {
            return Finding.sentences(of: error).map { .wrong(.files, $0) }
        }
    }

    /// Warns of templates with errors that no campaign names. The daemon reports the errors of all other templates.
    func unusedTemplates() -> [Finding] {
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration)
        let reported = Set(catalogue.problems.flatMap(\.messages))
        return YAMLFolder.files(in: configuration.templates).compactMap { path in
            let errors = TemplateFile.load(path: path).1.filter { $0.severity == .error }.map(\.description)
            guard !errors.isEmpty, reported.isDisjoint(with: errors) else { return nil }
            return .warning(.files, errors.joined(separator: "\n") + "\nno campaign uses this template")
        }
    }

    /// Warns of a proxy that may pass on a role header of its client.
    func roleHeader() -> [Finding] {
        guard let warning = configuration.http.proxy?.roleHeaderWarning else { return [] }
        return [.warning(.configuration, warning)]
    }

    func rights() -> [Finding] {
        let told = [configurationPath].compactMap(\.self) + folders
        let open = told.compactMap { path -> Finding? in
            guard let mode = fileMode(of: path), mode & 0o002 != 0 else { return nil }
            return .warning(
                .rights,
                "\(path) can be written by every user of this machine, who could then send; run: chmod o-w \(path)")
        }
        let findings =
            open + (StoreAddress(configuration.store).isURL ? password() : storeFile()) + webhooks() + editing()
        return findings.isEmpty ? [.ok(.rights, "only this user can write the files and read the store")] : findings
    }

    private func storeFile() -> [Finding] {
        let store = ["", "-wal"].map { configuration.store + $0 }.compactMap { path -> Finding? in
            guard let mode = fileMode(of: path), mode & 0o077 != 0 else { return nil }
            return .warning(
                .rights,
                "\(path), which holds device tokens, is open to others (mode \(String(mode, radix: 8))); "
                    + "run: chmod 600 \(path)")
        }
        return store + writing()
    }

    /// Warns of a database password in a configuration file that every user of the machine can read.
    private func password() -> [Finding] {
        guard environment["FANFARE_STORE"]?.isEmpty ?? true, let path = configurationPath,
            StoreAddress(configuration.store).postgres?.password != nil, let mode = fileMode(of: path),
            mode & 0o004 != 0
        else { return [] }
        return [
            .warning(
                .rights,
                "\(path), which holds the store's password, can be read by every user of this machine; write "
                    + "?password_file=FILE in the URL, or run: chmod o-r \(path)")
        ]
    }

    /// Warns if this user cannot write to the store's folder. Such a user can read the store, but not send.
    private func writing() -> [Finding] {
        let folder = URL(fileURLWithPath: configuration.store).deletingLastPathComponent().path
        guard FileManager.default.fileExists(atPath: folder), access(folder, W_OK) != 0 else { return [] }
        guard errno != EROFS else {
            return [
                .warning(
                    .rights,
                    "\(folder) is on a file system that is mounted read-only: the store can be read, but not changed")
            ]
        }
        let owner = try? FileManager.default.attributesOfItem(atPath: resolved(folder))[.ownerAccountName] as? String
        return [
            .warning(
                .rights,
                "this user cannot write in \(folder), and so can read, but not send; run commands that change "
                    + "something with: sudo -u \(owner ?? "OWNER") fanfare")
        ]
    }

    /// Warns if pages and API may save files, and this user cannot.
    ///
    /// - Parameter isWritable: whether this user may write in a folder.
    func editing(isWritable: (_ folder: String) -> Bool = { access($0, W_OK) == 0 }) -> [Finding] {
        guard configuration.http.editing else { return [] }
        return folders.filter { FileManager.default.fileExists(atPath: $0) && !isWritable($0) }.map { folder in
            .warning(
                .rights,
                "http.editing is on, and this user cannot write in \(folder), so the pages and the API cannot save a file there; "
                    + "make the server's user the folder's owner and, under systemd, name the folder in ReadWritePaths= "
                    + "(`systemctl edit fanfare`), or set editing: false")
        }
    }

    private func webhooks() -> [Finding] {
        configuration.webhooks.compactMap { webhook in
            let path = webhook.secretPath
            if access(path, R_OK) == 0 { return nil }
            if let hidden = HiddenFile.finding(.rights, path) { return hidden }
            return .wrong(
                .rights,
                "the webhook's secret \(path) cannot be read: \(String(cString: strerror(errno))); create it with "
                    + "openssl rand -hex 32, or correct secret_path")
        }
    }
}

/// A file that systemd reads for the service, and that this user may not see.
enum HiddenFile {
    static func finding(_ check: Finding.Check, _ path: String) -> Finding? {
        guard geteuid() != 0, access(path, R_OK) != 0, errno == EACCES else { return nil }
        return .warning(
            check,
            "\(path) cannot be read by this user; systemd gives the service a copy "
                + "(LoadCredential); run `fanfare doctor` as root to check it")
    }
}

/// The file of CA certificates that verifies an app's endpoints.
package enum TrustFile {
    /// Returns why this process cannot read the file, and what to do. `nil` if it can, or if the configuration names no
    /// file.
    package static func fault(of app: Configuration.App) -> String? {
        guard let path = app.endpoints.trust, access(path, R_OK) != 0 else { return nil }
        let reason = String(cString: strerror(errno))
        return "\(app.topic): cannot read the CA certificates in \(path): \(reason); "
            + "correct `trust` under `endpoints`, or put the file there"
    }
}

/// Checks the keys and certificates of an app.
struct CredentialChecks {
    private static let expiryWarning: Duration = .seconds(30 * 86_400)

    let app: Configuration.App
    let now: Timestamp
    let tried: @Sendable (Configuration.Credential, PushEnvironment) throws -> CredentialFacts

    func all() -> [Finding] {
        let environments = PushEnvironment.allCases.filter(app.credential.environments.contains)
        // One key for both environments is checked once.
        if case .keys = app.credential { return environments.flatMap(check) }
        return environments.prefix(1).flatMap(check)
    }

    private func check(_ environment: PushEnvironment) -> [Finding] {
        let (path, id) = file(environment)
        let name = "\(app.topic): \(app.credential.name(in: environment) ?? path)"
        let exposed = exposed(environment).map { Finding.warning(.credential, "\(name): \($0)") }
        do {
            let facts = try tried(app.credential, environment)
            let doubts = doubts(facts, path, id)
            guard doubts.isEmpty, exposed.isEmpty else {
                return exposed + doubts.map { .warning(.credential, "\(name): \($0)") }
            }
            let topics = facts.topics.isEmpty ? "" : ", for \(facts.topics.joined(separator: ", "))"
            let end =
                facts.expiresAt.map { "\(topics), valid until \($0.iso8601.prefix(10))" }
                ?? ", a well-formed key; only APNs knows whether it is valid"
            return [.ok(.credential, "\(name): \(path)\(end)")]
        } catch {
            if let hidden = HiddenFile.finding(.credential, path) { return [hidden] }
            return Finding.sentences(of: error).map { .wrong(.credential, "\(name): \($0)") } + exposed
        }
    }

    private func doubts(_ facts: CredentialFacts, _ path: String, _ id: String?) -> [String] {
        var doubts: [String] = []
        if let id, let named = Self.keyID(inNameOf: path), named != id {
            doubts.append(
                "the file's name is that of key \(named), but key_id is \(id): APNs responds InvalidProviderToken if "
                    + "they do not match")
        }
        if !facts.topics.isEmpty, !facts.topics.contains(app.topic) {
            doubts.append(
                "\(path) is for \(facts.topics.joined(separator: ", ")), but topic is \(app.topic): APNs accepts no "
                    + "push for any other topic")
        }
        if let end = facts.expiresAt, end < now + Self.expiryWarning {
            doubts.append(
                "it expires on \(end.iso8601.prefix(10)); create a new certificate at developer.apple.com before that")
        }
        return doubts
    }

    /// Names the secret files that users outside of owner and group can read, also if their content is wrong.
    private func exposed(_ environment: PushEnvironment) -> [String] {
        let secrets =
            switch app.credential {
            case .key, .keys: [file(environment).path]
            case .certificate(let path, let privateKeyPath, let passwordPath):
                [privateKeyPath ?? path, passwordPath].compactMap(\.self)
            }
        return secrets.filter { fileMode(of: $0).map { $0 & 0o004 != 0 } ?? false }.map {
            "\($0) can be read by other users of this machine; run: chmod 600 \($0)"
        }
    }

    private func file(_ environment: PushEnvironment) -> (path: String, keyID: String?) {
        switch app.credential {
        case .key(_, let id, let path): (path, id)
        case .keys(_, let keys): (keys[environment]?.path ?? "", keys[environment]?.id)
        case .certificate(let path, _, _): (path, nil)
        }
    }

    /// Returns the key's id in a file name, which Apple gives as `AuthKey_ABC123DEFG.p8`. The copy that systemd
    /// makes has a prefix.
    private static func keyID(inNameOf path: String) -> String? {
        path.firstMatch(of: /AuthKey_([A-Za-z0-9]{10})\.p8$/).map { String($0.1) }
    }
}

/// Facts about the machine and this process.
package struct MachineFacts: Sendable {
    package var version, system, libraries, user: String
    /// Whether the clock is synchronised; `nil` if the kernel does not say.
    package var isClockKept: Bool?
    /// The maximum number of open files of this process; `nil` if the kernel does not say.
    package var openFilesMax: Int?
    /// The maximum number of threads and processes of this user; `nil` if the kernel does not say, or for root.
    package var threadsMax: Int?
    /// Returns the name of the network file system that a folder lies on. `nil` if it lies on none.
    package var networkFileSystem: @Sendable (_ folder: String) -> String?

    package init(
        version: String, system: String, libraries: String, user: String, isClockKept: Bool?, openFilesMax: Int?,
        threadsMax: Int?, networkFileSystem: @escaping @Sendable (_ folder: String) -> String?
    ) {
        self.version = version
        self.system = system
        self.libraries = libraries
        self.user = user
        self.isClockKept = isClockKept
        self.openFilesMax = openFilesMax
        self.threadsMax = threadsMax
        self.networkFileSystem = networkFileSystem
    }
}

struct MachineChecks {
    /// The files besides the lanes: store, log, journals, server and its connections.
    private static let ownFiles = 200
    /// The files of a lane, such as a socket, an event queue and an event signal.
    private static let filesPerLane = 4
    private static let ownThreads = 64

    private let machine: MachineFacts

    init(_ machine: MachineFacts) {
        self.machine = machine
    }

    func all(_ configuration: Configuration?) -> [Finding] {
        let lanes = (configuration?.apps ?? []).map { $0.connections * $0.credential.environments.count }.reduce(0, +)
        return [clock, limits(lanes)]
    }

    private var clock: Finding {
        switch machine.isClockKept {
        case true: .ok(.clock, "synchronised by NTP")
        case false:
            .warning(
                .clock,
                "the clock is not synchronised: APNs refuses provider tokens if it is an hour off; run: timedatectl "
                    + "set-ntp true")
        case nil:
            .skipped(
                .clock,
                "the kernel does not report whether the clock is synchronised; compare `date -u` with a correct clock")
        }
    }

    private func limits(_ lanes: Int) -> Finding {
        let files = Self.ownFiles + Self.filesPerLane * lanes
        let threads = Self.ownThreads + lanes
        if let most = machine.openFilesMax, most < files {
            return .wrong(
                .limits,
                "this process may open \(most) files, but \(lanes) connections need \(files); raise the limit "
                    + "(LimitNOFILE= in the unit, ulimit -n in a shell)")
        }
        if let most = machine.threadsMax, most < threads {
            return .wrong(
                .limits,
                "this user may have \(most) threads, but \(lanes) connections need \(threads); raise the limit "
                    + "(TasksMax= in the unit, ulimit -u in a shell)")
        }
        return .ok(.limits, "enough files and threads for \(lanes) connections")
    }
}

/// Returns the permissions of the file that a path leads to, or `nil` if there is none.
private func fileMode(of path: String) -> Int? {
    (try? FileManager.default.attributesOfItem(atPath: resolved(path)))?[.posixPermissions] as? Int
}

/// Returns the file that a path leads to over symbolic links: the rights and size of a link are not those of the
/// file.
func resolved(_ path: String) -> String { URL(fileURLWithPath: path).resolvingSymlinksInPath().path }

extension Configuration.Proxy {
    /// The warning that a client may set the role header. `nil` if there is no such header, or if the configuration
    /// says that the proxy removes it.
    package var roleHeaderWarning: String? {
        guard let roleHeader, !removesHeaders else { return nil }
        return "http.proxy: a client that sends \(roleHeader) itself has any role, unless the proxy removes "
            + "\(userHeader) and \(roleHeader) from requests; configure that, then write removes_headers: true"
    }
}
