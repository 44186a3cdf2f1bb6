import CampaignFiles
import Foundation
package import Model
import Platform
import Store

/// A key file that the configuration names.
package struct KeyPlace: Hashable, Sendable {
    package var topic: String
    /// The environments of the key.
    package var environments: [PushEnvironment]
    package var teamID: String
    package var keyID: String
    package var path: String
    package var exists: Bool
    /// The reason why the key in its place cannot be used. `nil` if it can, or if there is none.
    package var fault: String?
    /// The reason why the key cannot be uploaded here. `nil` if it can.
    package var obstacle: String?

    /// Identifies the place on a page: `com.example.app`, or `com.example.app/sandbox` for a key of one environment.
    package var id: String { environments.count == 1 ? "\(topic)/\(environments[0].rawValue)" : topic }
}

/// The outcome of an upload of a key.
package struct KeyUpload: Hashable, Sendable {
    /// Whether APNs accepts the key in at least one environment, and refuses it in no other for being unknown.
    package var isAccepted: Bool
    /// Whether the key was written.
    package var isWritten: Bool
    /// The answers of APNs, one for each environment.
    package var answers: [String]
}

extension ManageSetup {
    /// The maximum size of a key file, in bytes. A key has about 250.
    package static let keyBytesMax = 64 << 10

    /// Returns the key files of all apps. An app with a certificate has none. Each key is tried here, but not with
    /// APNs.
    package func keyPlaces() -> [KeyPlace] {
        guard let written = written() else { return [] }
        let credentials = ServiceCredentials(environment: tools.environment)
        return written.apps.flatMap { app in
            Self.keys(of: app).map { place in
                var place = place
                let path = credentials.path(of: place.path)
                place.exists = access(path, F_OK) == 0
                place.obstacle = obstacle(to: place.path)
                guard place.exists else { return place }
                do {
                    _ = try tools.probes.credential(app.credential.replacing(place, by: path), place.environments[0])
                } catch {
                    place.fault = "\(place.topic): \(Finding.sentences(of: error).joined(separator: "; "))"
                }
                return place
            }
        }
    }

    /// Tries a key with APNs, and writes it to its place if APNs accepts it.
    ///
    /// - Parameters:
    ///   - id: the place; see ``KeyPlace/id``.
    ///   - keeps: whether to write a key that APNs does not accept, or that could not be tried.
    package func upload(
        _ key: [UInt8], to id: String, keeps: Bool, by actor: Actor, now: Timestamp
    ) async throws -> KeyUpload {
        let places = keyPlaces()
        guard let place = places.first(where: { $0.id == id }),
            var app = written()?.apps.first(where: { $0.topic == place.topic })
        else { throw Failure(.notFound, "the configuration has no key for \"\(id)\"; add the app first") }
        if let obstacle = place.obstacle { throw Failure(.refused, obstacle) }
        let (path, draft) = (place.path, Self.draft(besides: place.path))
        defer { unlink(draft) }
        // If this fails, the file cannot be written, which says why.
        mkdir(Self.folder(of: path), 0o700)
        let saved = await BlockingThread.run("key") { Result { try Self.save(key, to: draft) } }
        try saved.get()
        app.credential = app.credential.replacing(place, by: draft)
        let credential = app.credential
        let tried = await BlockingThread.run("key") { [tools] in
            Result { try tools.probes.credential(credential, place.environments[0]) }
        }
        if case .failure = tried {
            throw Failure(
                .invalidData,
                "this is not an APNs key; choose the file AuthKey_\(place.keyID).p8 as downloaded from Apple; it begins with "
                    + "-----BEGIN PRIVATE KEY-----")
        }
        var upload = await answers(app, place)
        guard upload.isAccepted || keeps else { return upload }
        let others = places.filter { $0.path == path && $0.id != id }.map(\.topic)
        guard upload.isAccepted || others.isEmpty else {
            throw Failure(
                .refused,
                "\(others.joined(separator: ", ")) also uses this key file; only a key that APNs accepts replaces it"
            )
        }
        guard rename(draft, path) == 0 else {
            throw Failure(.cannotMake, "\(path) cannot be written (error \(errno)); check the folder and its disk")
        }
        upload.isWritten = true
        let digest = Digest.sha256Hex(key).prefix(12)
        try await record(
            .keyUploaded,
            "\(place.id): key \(place.keyID), SHA-256 \(digest)" + (upload.isAccepted ? "" : ", not accepted by APNs"),
            actor, now)
        try await tools.reload()
        return upload
    }

    /// Asks APNs with the key, in each of its environments.
    private func answers(_ app: Configuration.App, _ place: KeyPlace) async -> KeyUpload {
        var (findings, answers) = ([Finding](), [String]())
        for environment in place.environments {
            let reached = await tools.probes.reach(app, environment, written()?.store ?? "")
            let finding =
                reached.isWell ? reached.credential : .wrong(.network, "\(reached.endpoint) \(reached.summary)")
            guard let finding else { continue }
            findings.append(finding)
            answers.append("\(environment.rawValue): \(finding.message)")
        }
        // Apple's newer keys work in one environment only.
        let isOfOne = findings.count > 1 && findings.contains { $0.state == .ok }
        let refused = findings.filter { $0.state == .wrong && $0.check == .credential }
        let isRefused = refused.contains { !(isOfOne && $0.message.contains("other environment")) }
        return KeyUpload(
            isAccepted: findings.contains { $0.state == .ok } && !isRefused, isWritten: false, answers: answers)
    }

    /// Returns the configuration with the paths of the file, and not those of copies that systemd makes.
    func written() -> Configuration? {
        guard let path = tools.source.path else { return nil }
        return ConfigurationFile.load(path: path, environment: tools.environment).0
    }

    private func obstacle(to path: String) -> String? {
        if ServiceCredentials(environment: tools.environment).path(of: path) != path {
            return
                "systemd gives the service a copy of the key when it starts; ask the operator to write \(path), and to "
                + "restart the service"
        }
        // A folder that does not exist is created with the key.
        let folder = Self.folder(of: path)
        let place = access(folder, F_OK) == 0 ? folder : Self.folder(of: folder)
        guard access(place, W_OK | X_OK) == 0 else {
            return
                "the service cannot write to the folder of \(path); ask the operator to write the key there, readable "
                + "only by the service"
        }
        return nil
    }

    static func keys(of app: Configuration.App) -> [KeyPlace] {
        switch app.credential {
        case .key(let team, let id, let path):
            [
                KeyPlace(
                    topic: app.topic, environments: PushEnvironment.allCases, teamID: team, keyID: id, path: path,
                    exists: false)
            ]
        case .keys(let team, let keys):
            PushEnvironment.allCases.compactMap { environment in
                keys[environment].map {
                    KeyPlace(
                        topic: app.topic, environments: [environment], teamID: team, keyID: $0.id, path: $0.path,
                        exists: false)
                }
            }
        case .certificate: []
        }
    }

    private static func folder(of path: String) -> String {
        let folder = (path as NSString).deletingLastPathComponent
        return folder.isEmpty ? "." : folder
    }

    private static func draft(besides path: String) -> String {
        let url = URL(filePath: path)
        return url.deletingLastPathComponent()
            .appending(path: ".\(url.lastPathComponent).\(UInt32.random(in: 0 ... .max)).tmp").path
    }

    private static func save(_ bytes: [UInt8], to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(.cannotMake, "the key cannot be written (error \(errno)); check the folder and its disk")
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try file.write(contentsOf: Data(bytes))
        try file.synchronize()
    }
}

extension Configuration.Credential {
    /// Returns the credential with another file for the key of a place.
    fileprivate func replacing(_ place: KeyPlace, by path: String) -> Self {
        switch self {
        case .key(let team, let id, _): return .key(teamID: team, keyID: id, path: path)
        case .keys(let team, var keys):
            for environment in place.environments { keys[environment]?.path = path }
            return .keys(teamID: team, keys)
        case .certificate: return self
        }
    }
}
