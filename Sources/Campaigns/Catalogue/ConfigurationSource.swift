import CampaignFiles
import Foundation
package import Model

/// Finds and reads the configuration: the named file, `$FANFARE_CONFIG`, `./fanfare.yaml` or
/// `/etc/fanfare/fanfare.yaml`. Environment variables override keys of the file.
package struct ConfigurationSource: Sendable {
    private let named: String?
    private let environment: [String: String]

    /// - Parameter named: the file that a person named. If it is `nil`, the file is `$FANFARE_CONFIG`, or else the
    ///   first of the two default files that exists.
    package init(named: String?, environment: [String: String]) {
        self.named = named ?? environment["FANFARE_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        self.environment = environment
    }

    private let candidates = ["fanfare.yaml", "/etc/fanfare/fanfare.yaml"]

    /// The file that ``read()`` reads; `nil` if there is none.
    package var path: String? { named ?? candidates.first { FileManager.default.fileExists(atPath: $0) } }

    /// The environment variable or the key of the file that gives the store's address, for a person to read.
    package var storeNamedBy: String {
        let variable = "FANFARE_STORE"
        guard environment[variable]?.isEmpty ?? true else { return variable }
        return "`store` in \(path ?? "the configuration")"
    }

    /// Whether a person named a file, or the current folder holds a `fanfare.yaml`.
    package var isNear: Bool { named != nil || FileManager.default.fileExists(atPath: "fanfare.yaml") }

    /// Returns the configuration if it exists and is valid. Otherwise returns `nil`, with no message.
    package func readIfRight() -> Configuration? {
        guard let path else { return nil }
        let (configuration, diagnostics) = ConfigurationFile.load(path: path, environment: environment)
        return diagnostics.allSatisfy { $0.severity == .warning } ? configuration : nil
    }

    /// Reads and checks the configuration.
    package func read() throws -> (configuration: Configuration, warnings: [Diagnostic]) {
        guard let path else {
            throw Failure(
                .configuration,
                "no configuration: looked for \(candidates.joined(separator: ", ")); name one with --config, create "
                    + "one with `fanfare init`, or try `fanfare demo` first")
        }
        let (configuration, diagnostics) = ConfigurationFile.load(path: path, environment: environment)
        guard let configuration, diagnostics.allSatisfy({ $0.severity == .warning }) else {
            throw Failure(.configuration, diagnostics)
        }
        return (ServiceCredentials(environment: environment).handedOver(configuration), diagnostics)
    }
}

/// The copies of secret files that systemd hands to a service: `LoadCredential=` in the unit,
/// `$CREDENTIALS_DIRECTORY` in the process. The service's user may not be able to read the original files.
package struct ServiceCredentials {
    private let folder: String?

    package init(environment: [String: String]) {
        folder = environment["CREDENTIALS_DIRECTORY"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns the path of a file's copy, or of the file itself if there is no copy. The copy of
    /// `/etc/fanfare/keys/A.p8` is named `A.p8`, or `keys_A.p8` if the unit loads the whole folder as `keys`.
    package func path(of file: String) -> String {
        guard let folder else { return file }
        let url = URL(fileURLWithPath: file)
        let name = url.lastPathComponent
        let names = [name, "\(url.deletingLastPathComponent().lastPathComponent)_\(name)"]
        return names.map { "\(folder)/\($0)" }.first { FileManager.default.fileExists(atPath: $0) } ?? file
    }

    /// Returns the configuration with the paths of the copies in place of the original paths.
    package func handedOver(_ configuration: Configuration) -> Configuration {
        guard folder != nil else { return configuration }
        var configuration = configuration
        configuration.store = StoreAddress(configuration.store).withFiles { path(of: $0) }
        for index in configuration.apps.indices {
            configuration.apps[index].credential = handedOver(configuration.apps[index].credential)
        }
        for index in configuration.webhooks.indices {
            configuration.webhooks[index].secretPath = path(of: configuration.webhooks[index].secretPath)
        }
        return configuration
    }

    private func handedOver(_ credential: Configuration.Credential) -> Configuration.Credential {
        switch credential {
        case .key(let teamID, let keyID, let path): .key(teamID: teamID, keyID: keyID, path: self.path(of: path))
        case .keys(let teamID, let keys):
            .keys(teamID: teamID, keys.mapValues { .init(id: $0.id, path: path(of: $0.path)) })
        case .certificate(let certificatePath, let privateKeyPath, let passwordPath):
            .certificate(
                certificatePath: path(of: certificatePath), privateKeyPath: privateKeyPath.map { path(of: $0) },
                passwordPath: passwordPath.map { path(of: $0) })
        }
    }
}

extension Configuration {
    /// Returns `nil` if the configuration does not contain the app.
    package func appIfKnown(for topic: String) -> App? { apps.first { $0.topic == topic } }

    /// Returns `nil` if the configuration does not contain the app, or the app has no silent budget.
    package func silentBudget(for topic: String) -> SilentBudget? { appIfKnown(for: topic)?.silentBudget }

    package func app(for topic: String) throws -> App {
        if let app = appIfKnown(for: topic) { return app }
        let known = apps.map(\.topic).joined(separator: ", ")
        throw Failure(
            .configuration,
            "no app with topic \(topic) in the configuration (known: \(known.isEmpty ? "none" : known)); add it under `apps`"
        )
    }
}
