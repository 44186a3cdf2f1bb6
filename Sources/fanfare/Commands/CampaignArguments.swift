import ArgumentParser
import CampaignFiles
import Campaigns
import Foundation
import Model

/// The values of a run's variables.
struct VariableArguments: ParsableArguments {
    @Option(name: .customLong("var"), help: "A variable's value, name=value; may be repeated.")
    var variables: [String] = []

    @Option(
        help: "A file with values, `name: value` per line (YAML or JSON); --var overrides it.",
        completion: .file(extensions: ["yaml", "yml", "json"]))
    var varsFile: String?

    var isEmpty: Bool { variables.isEmpty && varsFile == nil }

    /// Returns the values of `--vars-file` and of `--var`, which takes precedence.
    func values() throws -> [String: String] {
        var values: [String: String] = [:]
        if let varsFile {
            let (found, diagnostics) = VariablesFile.load(path: varsFile)
            guard let found else { throw Failure(.invalidData, diagnostics) }
            values = found
        }
        for entry in variables {
            guard let (name, value) = entry.splitAtSign("="), !name.isEmpty else {
                throw ValidationError("--var \(entry): write name=value")
            }
            // Swift replaces bytes that are not UTF-8 with this character. A person may also have typed it.
            if value.unicodeScalars.contains("\u{FFFD}"), let other = ArgumentBytes.notText {
                throw ValidationError(
                    "--var \(name): the argument \(other) is not UTF-8 text; set the terminal to UTF-8, or give the value "
                        + "with --vars-file")
            }
            values[name] = value
        }
        return values
    }
}

/// A campaign and the values of its variables, as `plan`, `render` and `run` take them.
struct CampaignArguments: ParsableArguments {
    @Argument(help: "The campaign's name, or the path of its file.", completion: .custom(CampaignNames.completions))
    var campaign: String

    @OptionGroup var variables: VariableArguments

    /// Reads and checks the files. Warnings go to standard error.
    func definition(_ configuration: Configuration, plannedAt: Timestamp) throws -> RunDefinition {
        try Self.definitionWithFiles(campaign, variables, configuration, plannedAt: plannedAt).definition
    }

    /// Returns the definition together with the variables that have a value from the arguments, and with the hashes of
    /// its files, for the audit log.
    static func definitionWithFiles(
        _ campaign: String, _ variables: VariableArguments, _ configuration: Configuration, plannedAt: Timestamp
    ) throws -> (definition: RunDefinition, typed: Set<String>, files: [String: String]) {
        let source = try CampaignSource.load(campaign, configuration)
        for warning in source.warnings { Console.note(warning.description) }
        let values = try variables.values()
        let definition = try source.definition(with: values, plannedAt: plannedAt)
        for finding in definition.lintOfValues() { Console.note("warning: \(finding)") }
        return (definition, Set(values.keys), source.hashes)
    }
}

/// The shell's completions of campaign names.
enum CampaignNames {
    @Sendable static func completions(arguments: [String], index: Int, prefix: String) -> [String] {
        let folder = Settings.completing(arguments).configurationIfAny()?.campaigns ?? "campaigns"
        return YAMLFolder.names(in: folder).filter { $0.hasPrefix(prefix) }
    }
}

/// The arguments of this process as the system holds them, before Swift replaces bytes that are not UTF-8.
enum ArgumentBytes {
    /// The position, from 1, of the first argument that is not UTF-8. `nil` if there is none.
    static var notText: Int? {
        (1..<max(1, Int(CommandLine.argc))).first { place in
            CommandLine.unsafeArgv[place].map { String(validatingCString: $0) == nil } ?? false
        }
    }
}
