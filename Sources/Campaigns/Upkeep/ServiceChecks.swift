import Foundation
import Model
import Store

/// The service of this machine, as its unit describes it.
package struct ServiceFacts: Hashable, Sendable {
    package var user: ServiceUser
    /// The paths of the files and folders that `LoadCredential=` passes to the service, by name.
    package var credentials: [String: String]
    /// The folder with the copies of the running service. `nil` if no service runs, or if this user may not see it.
    package var copies: String?
    /// The service's own folder, which systemd creates: `/var/lib/fanfare`.
    package var stateFolder: String
    /// The configuration that the service's command names; `nil` if it names none.
    package var configuration: String?

    package init(
        user: ServiceUser, credentials: [String: String], copies: String? = nil,
        stateFolder: String = "/var/lib/fanfare", configuration: String? = nil
    ) {
        self.configuration = configuration
        self.user = user
        self.credentials = credentials
        self.copies = copies
        self.stateFolder = stateFolder
    }
}

extension ServiceFacts {
    /// Returns whether a configuration is the service's own. The service does not read any other configuration.
    func reads(_ path: String?) -> Bool {
        guard let configuration, let path else { return false }
        func resolved(_ path: String) -> String { URL(fileURLWithPath: path).resolvingSymlinksInPath().path }
        return resolved(configuration) == resolved(path)
    }
}

/// A user and its groups. Access is decided by owner, group and mode of a file; access control lists are not read.
package struct ServiceUser: Hashable, Sendable {
    package var name: String
    package var uid: UInt32
    package var groups: Set<UInt32>

    package init(name: String, uid: UInt32, groups: Set<UInt32>) {
        self.name = name
        self.uid = uid
        self.groups = groups
    }

    /// Returns the first folder or file on the way to `path` that the user may not use. Returns `nil` if there is none,
    /// or if the file does not exist.
    func obstacle(to path: String, writing: Bool = false) -> String? {
        let resolved = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        var folder = resolved.deletingLastPathComponent()
        var folders: [String] = []
        while folder.path != "/" {
            folders.append(folder.path)
            folder.deleteLastPathComponent()
        }
        for folder in folders.reversed() where !may(0o1, folder) { return folder }
        return may(writing ? 0o6 : 0o4, resolved.path) ? nil : resolved.path
    }

    private func may(_ bits: mode_t, _ path: String) -> Bool {
        var facts = stat()
        guard uid != 0, stat(path, &facts) == 0 else { return true }
        if facts.st_uid == uid { return facts.st_mode >> 6 & bits == bits }
        return (groups.contains(facts.st_gid) ? facts.st_mode >> 3 : facts.st_mode) & bits == bits
    }
}

/// Checks, as root, whether the service's user has the access that it needs.
struct ServiceChecks {
    /// The folders that `ProtectHome=yes` in the units hides from the service.
    private static let hidden = ["/home/", "/root/", "/run/user/"]

    private let configuration: Configuration
    private let path: String?
    private let service: ServiceFacts

    init(_ configuration: Configuration, path: String?, service: ServiceFacts) {
        self.configuration = configuration
        self.path = path
        self.service = service
    }

    func all() -> [Finding] {
        let findings = store() + read() + edited() + handedOver() + password()
        return findings.isEmpty
            ? [.ok(.rights, "the service (\(service.user.name)) can read and write what it needs")] : findings
    }

    private func store() -> [Finding] {
        guard !StoreAddress(configuration.store).isURL else { return [] }
        let folder = URL(fileURLWithPath: configuration.store).deletingLastPathComponent().path
        let beside = ["", "-wal", "-shm", "-senders"].map { configuration.store + $0 }
        return ([folder] + beside).compactMap { path in
            service.user.obstacle(to: path, writing: true).map { obstacle in
                .wrong(
                    .rights,
                    "the service (\(service.user.name)) cannot write \(obstacle); run: chown -R \(service.user.name): "
                        + "\(obstacle)")
            }
        }.uniqued()
    }

    /// Checks the files that the service reads directly, and not as a copy that systemd makes.
    private func read() -> [Finding] {
        let trusted = configuration.apps.compactMap(\.endpoints.trust)
        let told = [path].compactMap(\.self) + [configuration.campaigns, configuration.templates]
        return (told + trusted).compactMap { path -> Finding? in
            let path = URL(fileURLWithPath: path).standardizedFileURL.path
            if Self.hidden.contains(where: path.hasPrefix) {
                return .wrong(
                    .rights,
                    "the service cannot read /root and /home (ProtectHome=): put \(path) elsewhere, such as "
                        + service.stateFolder)
            }
            return service.user.obstacle(to: path).map { obstacle in
                .wrong(
                    .rights, "the service (\(service.user.name)) cannot read \(obstacle); run: chmod o+rX \(obstacle)")
            }
        }.uniqued()
    }

    private func edited() -> [Finding] {
        guard configuration.http.editing else { return [] }
        return [configuration.campaigns, configuration.templates].compactMap { folder in
            service.user.obstacle(to: folder, writing: true).map { _ in
                .warning(
                    .rights,
                    "http.editing is on, and the service (\(service.user.name)) cannot write \(folder); run: "
                        + "chown -R \(service.user.name): \(folder)")
            }
        }
    }

    /// Checks the copies of keys and secrets that systemd makes when the service starts.
    private func handedOver() -> [Finding] {
        secrets.flatMap { secret -> [Finding] in
            guard FileManager.default.fileExists(atPath: secret) else { return [] }
            guard let copy = copyName(of: secret) else {
                guard service.user.obstacle(to: secret) != nil else { return [] }
                let folder = service.credentials.values.sorted().first ?? "/etc/fanfare/keys"
                return [
                    .wrong(
                        .credential,
                        "the service gets no copy of \(secret), and cannot read it: put it into \(folder), which the unit "
                            + "hands over (LoadCredential=), and correct the configuration")
                ]
            }
            guard let copies = service.copies else { return [] }
            let held = FileManager.default.contents(atPath: "\(copies)/\(copy)")
            guard held != FileManager.default.contents(atPath: secret) else { return [] }
            return [
                .warning(
                    .credential,
                    "the running service has \(held == nil ? "no copy" : "an older copy") of \(secret); run: systemctl "
                        + "restart fanfare")
            ]
        }
    }

    /// Warns if commands by `sudo -u` cannot read the password of the database. The service has a copy of the password,
    /// but these commands have none, and open the store themselves.
    private func password() -> [Finding] {
        guard let address = StoreAddress(configuration.store).postgres, address.password == nil else { return [] }
        let exists = { (path: String) in FileManager.default.fileExists(atPath: path) }
        let passfile = service.credentials.values.sorted().map { "\($0)/pgpass" }.first(where: exists)
        let named = address.options[.passwordFile]
        guard let file = named ?? passfile, exists(file), service.user.obstacle(to: file) != nil else { return [] }
        let name = service.user.name
        let summary =
            "commands by `sudo -u \(name) fanfare` cannot read the store's password in \(file); write the password alone "
            + "into /etc/fanfare/store.password, run: chown root:\(name) /etc/fanfare/store.password; chmod 640 "
            + "/etc/fanfare/store.password, and end the store's URL in ?password_file=/etc/fanfare/store.password"
        return [named.map { copyName(of: $0) == nil } == true ? .wrong(.rights, summary) : .warning(.rights, summary)]
    }

    private var secrets: [String] {
        let keys = configuration.apps.flatMap { app -> [String] in
            switch app.credential {
            case .key(_, _, let path): [path]
            case .keys(_, let keys): keys.values.map(\.path)
            case .certificate(let certificate, let key, let password): [certificate, key, password].compactMap(\.self)
            }
        }
        return Array(Set(keys + configuration.webhooks.map(\.secretPath))).sorted()
    }

    /// Returns the name of the copy, as ``ServiceCredentials`` looks it up. `nil` if the unit does not pass the file
    /// on.
    private func copyName(of secret: String) -> String? {
        let url = URL(fileURLWithPath: secret)
        if let file = service.credentials.first(where: { $0.value == secret }) { return file.key }
        let folder = service.credentials.first { $0.value == url.deletingLastPathComponent().path }
        return folder.map { "\($0.key)_\(url.lastPathComponent)" }
    }
}

extension Array where Element == Finding {
    fileprivate func uniqued() -> [Finding] {
        var seen: Set<Finding> = []
        return filter { seen.insert($0).inserted }
    }
}
