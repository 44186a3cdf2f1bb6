import Foundation
import Model

/// The copies of secret files that systemd hands to a service: `LoadCredential=` in the unit, `$CREDENTIALS_DIRECTORY`
/// in the process. The service's own user could not read the files themselves.
struct ServiceCredentials {
    private let folder: String?

    init(environment: [String: String]) {
        folder = environment["CREDENTIALS_DIRECTORY"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// `/etc/fanfare/keys/A.p8` is looked up as `A.p8`, and as `keys_A.p8`, the name it has when the unit loads its
    /// whole folder as `keys`. A file without a copy is itself.
    func path(of file: String) -> String {
        guard let folder else { return file }
        let url = URL(fileURLWithPath: file)
        let name = url.lastPathComponent
        let names = [name, "\(url.deletingLastPathComponent().lastPathComponent)_\(name)"]
        return names.map { "\(folder)/\($0)" }.first { FileManager.default.fileExists(atPath: $0) } ?? file
    }

    /// The configuration with the copies in place of what they are copies of.
    func handedOver(_ configuration: Configuration) -> Configuration {
        guard folder != nil else { return configuration }
        var configuration = configuration
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
        case .certificate(let certificatePath, let privateKeyPath):
            .certificate(
                certificatePath: path(of: certificatePath), privateKeyPath: privateKeyPath.map { path(of: $0) })
        }
    }
}
