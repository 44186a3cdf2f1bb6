import APNs
import ArgumentParser
import CampaignFiles
import Foundation
import Model
import SQLiteStore
import Store

/// `--config`, and what follows from it.
struct Settings: ParsableArguments {
    @Option(
        name: .long,
        help: "The configuration file (default: $FANFARE_CONFIG, ./fanfare.yaml, /etc/fanfare/fanfare.yaml).",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    /// The settings of a command line that is still being written.
    static func completing(_ words: [String]) -> Settings {
        var settings = Settings()
        settings.config = words.firstIndex(of: "--config").flatMap { index in
            words.indices.contains(index + 1) ? words[index + 1] : nil
        }
        return settings
    }

    private static var environment: [String: String] { ProcessInfo.processInfo.environment }

    private static var places: [String] {
        [environment["FANFARE_CONFIG"], "fanfare.yaml", "/etc/fanfare/fanfare.yaml"].compactMap(\.self)
    }

    /// The file that ``configuration()`` reads; nil when there is none.
    var path: String? {
        config ?? Self.places.first { FileManager.default.fileExists(atPath: $0) }
    }

    /// The configuration if there is one and it is right, without a word about it otherwise.
    func configurationIfAny() -> Configuration? {
        guard let path else { return nil }
        let (configuration, diagnostics) = ConfigurationFile.load(path: path, environment: Self.environment)
        return diagnostics.allSatisfy { $0.severity == .warning } ? configuration : nil
    }

    /// Reads and checks the configuration; warnings go to standard error.
    func configuration() throws -> Configuration {
        guard let path else {
            throw Failure(
                .configuration,
                "no configuration: looked for \(Self.places.joined(separator: ", ")); name one with --config, make one "
                    + "with `fanfare init`, or try `fanfare demo` first")
        }
        let (configuration, diagnostics) = ConfigurationFile.load(path: path, environment: Self.environment)
        guard let configuration, diagnostics.allSatisfy({ $0.severity == .warning }) else {
            throw Failure(.configuration, diagnostics)
        }
        for warning in diagnostics { Console.note(warning.description) }
        return ServiceCredentials(environment: Self.environment).handedOver(configuration)
    }

    func store(_ configuration: Configuration) throws -> any AllRoles {
        try SQLiteFileStore(path: configuration.store, hasEnded: ProcessName.hasEnded)
    }
}

extension Configuration {
    /// Nil when the configuration does not know the app.
    func silentBudget(for topic: String) -> SilentBudget? {
        apps.first { $0.topic == topic }?.silentBudget
    }

    func app(for topic: String) throws -> App {
        if let app = apps.first(where: { $0.topic == topic }) { return app }
        let known = apps.map(\.topic).joined(separator: ", ")
        throw Failure(
            .configuration,
            "no app with topic \(topic) in the configuration (known: \(known.isEmpty ? "none" : known)); add it under `apps`"
        )
    }
}
