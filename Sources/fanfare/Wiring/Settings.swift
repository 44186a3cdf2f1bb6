import APNs
import ArgumentParser
import CampaignFiles
import Foundation
import Model
import Storage

/// `--config`, and what follows from it.
struct Settings: ParsableArguments {
    @Option(
        name: .long,
        help: "The configuration file (default: $FANFARE_CONFIG, ./fanfare.yaml, /etc/fanfare/fanfare.yaml).")
    var config: String?

    /// Reads and checks the configuration; warnings go to standard error.
    func configuration() throws -> Configuration {
        let environment = ProcessInfo.processInfo.environment
        let places = [environment["FANFARE_CONFIG"], "fanfare.yaml", "/etc/fanfare/fanfare.yaml"].compactMap(\.self)
        guard let path = config ?? places.first(where: { FileManager.default.fileExists(atPath: $0) }) else {
            throw Failure(
                .configuration,
                "no configuration: looked for \(places.joined(separator: ", ")); name one with --config, or try "
                    + "`fanfare demo` first")
        }
        let (configuration, diagnostics) = ConfigurationFile.load(path: path, environment: environment)
        guard let configuration, diagnostics.allSatisfy({ $0.severity == .warning }) else {
            throw Failure(.configuration, diagnostics)
        }
        for warning in diagnostics { Console.note(warning.description) }
        return configuration
    }

    func store(_ configuration: Configuration) throws -> Store {
        try Store(path: configuration.store)
    }
}

extension Configuration {
    func app(for topic: String) throws -> App {
        if let app = apps.first(where: { $0.topic == topic }) { return app }
        let known = apps.map(\.topic).joined(separator: ", ")
        throw Failure(
            .configuration,
            "no app with topic \(topic) in the configuration (known: \(known.isEmpty ? "none" : known)); add it under `apps`"
        )
    }
}
