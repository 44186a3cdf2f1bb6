import ArgumentParser
import Campaigns
import Foundation
import Model

struct ValidateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "validate",
        abstract: "Check campaign, template and configuration files; report every problem at once.")

    @OptionGroup var settings: Settings

    @Argument(
        help: "Files or folders (default: the configured folders, else ./campaigns and ./templates).",
        completion: .file(extensions: ["yaml", "yml"]))
    var paths: [String] = []

    @Option(help: "Where the templates of the campaigns are (default: as configured, else `templates` beside them).")
    var templates: String?

    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let files = CheckFiles(
            configuration: settings.configurationIfAny(), templates: templates,
            environment: ProcessInfo.processInfo.environment)
        let checked = try files.check(try paths.isEmpty ? defaultFolders() : paths)
        json ? Console.print(try JSONOutput.text(checked.result)) : show(checked)
        if checked.hasErrors { throw ExitStatus.invalidData.exitCode }
    }

    private func defaultFolders() throws -> [String] {
        guard settings.source.isNear else { return ["campaigns", "templates"] }
        let configuration = try settings.configuration()
        return [configuration.campaigns, configuration.templates]
    }

    private func show(_ checked: CheckFiles.Checked) {
        for diagnostic in checked.diagnostics { Console.print(diagnostic.description) }
        for check in checked.checks where check.isRight {
            let sizes = check.sizes.map { "\($0.text) \($0.bytes)" }.joined(separator: ", ")
            let limit = check.sizes.first.map { "; at most \($0.limit) bytes allowed" } ?? ""
            Console.print("\(check.path): ok" + (sizes.isEmpty ? "" : " (largest payload: \(sizes)\(limit))"))
        }
    }
}
