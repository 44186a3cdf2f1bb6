import ArgumentParser
import CampaignFiles
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
        let files = try paths.isEmpty ? defaultFolders() : paths
        let configuration = settings.configurationIfAny()
        var checks: [CampaignCheck] = []
        for path in try files.flatMap(expand) { checks.append(try check(path, configuration)) }
        guard !checks.isEmpty else { throw Failure(.notFound, "no YAML files in \(files.joined(separator: ", "))") }
        let diagnostics = Self.unique(checks.flatMap(\.diagnostics))
        json ? Console.print(try JSONOutput.text(ValidationJSON(checks, diagnostics))) : show(checks, diagnostics)
        if diagnostics.contains(where: { $0.severity == .error }) { throw ExitStatus.invalidData.exitCode }
    }

    private func defaultFolders() throws -> [String] {
        let isConfigured = settings.config != nil || FileManager.default.fileExists(atPath: "fanfare.yaml")
        guard isConfigured else { return ["campaigns", "templates"] }
        let configuration = try settings.configuration()
        return [configuration.campaigns, configuration.templates]
    }

    private func expand(_ path: String) throws -> [String] {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw Failure(.notFound, "no file or folder \(path); check the path")
        }
        return isFolder.boolValue ? YAMLFolder.files(in: path) : [path]
    }

    private func check(_ path: String, _ configuration: Configuration?) throws -> CampaignCheck {
        switch FileKind.of(path: path) {
        case .template:
            return CampaignCheck(path: path, diagnostics: TemplateFile.load(path: path).1)
        case .configuration:
            let (_, diagnostics) = ConfigurationFile.load(
                path: path, environment: ProcessInfo.processInfo.environment)
            return CampaignCheck(path: path, diagnostics: diagnostics)
        case .campaign:
            return CampaignCheck.check(
                path: path, templatesFolder: try templatesFolder(besides: path), configuration: configuration)
        }
    }

    private func templatesFolder(besides path: String) throws -> String {
        if let templates { return templates }
        let parent = ((path as NSString).deletingLastPathComponent as NSString).deletingLastPathComponent
        let beside = parent.isEmpty ? "templates" : "\(parent)/templates"
        if FileManager.default.fileExists(atPath: beside) { return beside }
        return try settings.configuration().templates
    }

    private func show(_ checks: [CampaignCheck], _ diagnostics: [Diagnostic]) {
        for diagnostic in diagnostics { Console.print(diagnostic.description) }
        for check in checks where check.isRight {
            let sizes = check.sizes.map { "\($0.text) \($0.bytes)" }.joined(separator: ", ")
            let limit = check.sizes.first.map { "; at most \($0.limit) bytes allowed" } ?? ""
            Console.print("\(check.path): ok" + (sizes.isEmpty ? "" : " (largest payload: \(sizes)\(limit))"))
        }
    }

    /// A template that several campaigns use has its problems reported once.
    private static func unique(_ diagnostics: [Diagnostic]) -> [Diagnostic] {
        var seen: Set<Diagnostic> = []
        return diagnostics.filter { seen.insert($0).inserted }
    }
}

/// What a YAML file is, by its first key.
enum FileKind {
    case campaign, template, configuration

    static func of(path: String) -> FileKind {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        for line in text.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("template:") { return .template }
            if line.hasPrefix("campaign:") { return .campaign }
            if line.hasPrefix("store:") || line.hasPrefix("apps:") { return .configuration }
        }
        return path.contains("template") ? .template : .campaign
    }
}

/// The stable shape of `validate --json`.
private struct ValidationJSON: Encodable {
    struct Problem: Encodable {
        var path: String
        var line: Int
        var column: Int
        var severity: String
        var what: String
        var advice: String
    }

    struct File: Encodable {
        var path: String
        var ok: Bool
        /// By locale, behind the variant's name if there is one.
        var payloadMaxBytes: [String: Int]
    }

    var files: [File]
    var problems: [Problem]

    init(_ checks: [CampaignCheck], _ diagnostics: [Diagnostic]) {
        files = checks.map { check in
            File(
                path: check.path, ok: check.isRight,
                payloadMaxBytes: Dictionary(check.sizes.map { ($0.text, $0.bytes) }) { max($0, $1) })
        }
        problems = diagnostics.map {
            Problem(
                path: $0.path, line: $0.line, column: $0.column, severity: $0.severity.rawValue, what: $0.what,
                advice: $0.advice)
        }
    }
}
