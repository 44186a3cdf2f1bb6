import ArgumentParser
import CampaignFiles
import Campaigns
import Foundation
import Model
import Store
import WebClient

struct ValidateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "validate",
        abstract: "Check campaign, template and configuration files; report all problems together.",
        discussion: """
            Referenced files are checked too. With a store, the command warns if no device is registered under \
            the topic that the push goes to, and names the languages of the app's devices that would get the default \
            text.

            Texts that are probably mistakes give warnings, each with the name of its rule: short-text, test-words, \
            lorem-ipsum, repetition, unfilled-placeholder, mixed-scripts, no-expiry, dead-link. never-filled is an \
            error. To allow such a text in a template, write lint: {allow: [short-text]}. plan and run also show the warnings.
            """)

    @OptionGroup var settings: Settings

    @Argument(
        help: "Files or folders (default: the configured folders, else ./campaigns and ./templates).",
        completion: .file(extensions: ["yaml", "yml"]))
    var paths: [String] = []

    @Option(
        help: "The folder with the templates of the campaigns (default: as configured, else `templates` beside them).")
    var templates: String?

    @Flag(help: "Request every link of the templates, and warn of dead links.") var links = false
    @Flag(help: "Treat warnings as errors: exit 65.") var strict = false
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let configuration = settings.configurationIfAny()
        let files = CheckFiles(
            configuration: configuration, templates: templates,
            configuredTemplates: { [settings] in try settings.configuration().templates },
            environment: ProcessInfo.processInfo.environment, devices: await devices(configuration),
            now: WallClock.system.now(), hasRun: await startedOccurrences(configuration),
            values: await values(configuration))
        var checked = try files.check(try paths.isEmpty ? defaultFolders() : paths)
        if links { checked.add(dead: await LinkCheck.dead(checked.links, configuration)) }
        checked.add(languages: await languages(configuration, of: checked.topics))
        json ? Console.print(try ResultJSON.text(checked.result)) : show(checked)
        if checked.hasErrors || strict && !checked.isClean { throw ExitStatus.invalidData.exitCode }
    }

    /// Returns the device counts, or none if the store cannot be read, which other commands report.
    private func devices(_ configuration: Configuration?) async -> [DeviceCount] {
        (try? await store(configuration)?.deviceCounts()) ?? []
    }

    /// Returns a function that tells whether a campaign with a single start, due or over, has a run for it.
    private func startedOccurrences(
        _ configuration: Configuration?
    ) async -> @Sendable (_ campaign: String, _ occurrence: String) -> Bool {
        guard let configuration, let opened = try? await store(configuration) else { return { _, _ in false } }
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration)
        let started =
            (try? await opened.startedPast(catalogue.ready.map(\.campaign), now: WallClock.system.now())) ?? []
        return { started.contains("\($0)/\($1)") }
    }

    /// Returns the values of coming starts, or none if the store cannot be read.
    private func values(_ configuration: Configuration?) async -> StartValues {
        guard let opened = try? await store(configuration) else { return StartValues() }
        return (try? await opened.startValues(now: WallClock.system.now())) ?? StartValues()
    }

    private func languages(_ configuration: Configuration?, of topics: Set<String>) async -> [String: [String: Int]] {
        guard !topics.isEmpty, let opened = try? await store(configuration) else { return [:] }
        var languages: [String: [String: Int]] = [:]
        for topic in topics {
            languages[topic] = try? await opened.languages(ofTopic: topic, now: WallClock.system.now())
        }
        return languages
    }

    private func store(_ configuration: Configuration?) async throws -> OpenedStore? {
        guard let address = configuration?.store,
            StoreAddress(address).isURL || FileManager.default.fileExists(atPath: address)
        else { return nil }
        return try await StoreOpening.open(address, .reading)
    }

    private func defaultFolders() throws -> [String] {
        // Use the folders here if there is no configuration, or only the machine's and ./campaigns exists.
        let source = settings.source
        guard source.isNear || (source.path != nil && !FileManager.default.fileExists(atPath: "campaigns")) else {
            return ["campaigns", "templates"]
        }
        let configuration = try settings.configuration()
        return [configuration.campaigns, configuration.templates]
    }

    private static func summary(_ languages: [String], _ check: CampaignCheck) -> String {
        let more = languages.count > languagesShown ? " and \(languages.count - languagesShown) more" : ""
        return "\(check.path): no text in \(languages.prefix(languagesShown).joined(separator: ", "))\(more); "
            + "devices in these languages get \(check.fallbacks.joined(separator: " or "))"
    }

    private static let languagesShown = 10

    private func show(_ checked: CheckFiles.Checked) {
        for diagnostic in checked.diagnostics { Console.print(diagnostic.description) }
        for check in checked.checks where check.isRight {
            let sizes = check.sizes.map { "\($0.text) \($0.bytes)" }.joined(separator: ", ")
            let assumed =
                check.assumesValues ? "; a value that is not given yet counts as \(Planner.fieldMaxBytes) bytes" : ""
            let limit = check.sizes.first.map { "; at most \($0.limit) bytes allowed\(assumed)" } ?? ""
            Console.print("\(check.path): ok" + (sizes.isEmpty ? "" : " (largest payload: \(sizes)\(limit))"))
            if let languages = check.fallbackLanguages { Console.print(Self.summary(languages, check)) }
        }
    }
}

/// Checks whether the links of templates lead anywhere.
private enum LinkCheck {
    private static let atOnceMax = 8
    private static let totalTime: Duration = .seconds(10)

    /// Returns the dead links, each with the reason.
    static func dead(_ links: [String], _ configuration: Configuration?) async -> [String: String] {
        var limits = WebLimits()
        limits.totalTime = totalTime
        let client = HTTPClient(addresses: .feeds(configuration?.feeds ?? .init()), limits: limits)
        return await withTaskGroup(of: (String, String?).self) { group in
            var rest = links[...]
            for link in rest.prefix(atOnceMax) { group.addTask { (link, await client.fault(ofLink: link)) } }
            rest = rest.dropFirst(atOnceMax)
            var dead: [String: String] = [:]
            while let (link, fault) = await group.next() {
                dead[link] = fault
                if let next = rest.popFirst() { group.addTask { (next, await client.fault(ofLink: next)) } }
            }
            return dead
        }
    }
}

struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the JSON Schema of a kind of file, for editors that check while you write.",
        discussion: """
            For the YAML language server (VS Code, Neovim, Helix, ...), save the schema and name it in the first line:

              fanfare schema campaign > campaign.schema.json
              # yaml-language-server: $schema=../campaign.schema.json

            Its patterns are JavaScript patterns with Unicode classes, as JSON Schema defines; a checker without \
            these, such as Python's jsonschema alone, refuses them. In a build, use check-jsonschema --schemafile.
            """)

    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case campaign, template, config
    }

    @Argument(help: "campaign, template or config.") var kind: Kind

    func run() throws {
        let file: JSONSchema.File =
            switch kind {
            case .campaign: .campaign
            case .template: .template
            case .config: .configuration
            }
        Console.print(String(JSONSchema.text(for: file).dropLast()))
    }
}

struct InitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Write a commented campaign, template and configuration to start from.",
        discussion: "If one of the files already exists, nothing is written, and the command exits with 65.")

    @Argument(help: "A folder; created if it does not exist.", completion: .directory) var directory = "."

    func run() throws {
        let folder = directory.hasSuffix("/") && directory != "/" ? String(directory.dropLast()) : directory
        let paths = StarterFiles.all.map { (path: "\(folder)/\($0.name)", text: $0.text) }
        let known = paths.map(\.path).filter { FileManager.default.fileExists(atPath: $0) }
        guard known.isEmpty else {
            throw Failure(
                .invalidData,
                "\(known.joined(separator: ", ")) already \(known.count == 1 ? "exists" : "exist"); nothing was written: "
                    + "name another folder"
            )
        }
        for (path, text) in paths { try Self.write(text, to: path) }
        let cd = folder == "." ? "" : "cd \(folder) && "
        Console.print(
            paths.map { "wrote \($0.path)" }.joined(separator: "\n") + """


                Next: put your topic, team_id, key_id and key_path into fanfare.yaml, and then
                  \(cd)fanfare validate
                  fanfare devices import devices.csv
                  fanfare segments define podcast-fans 'tag("podcast")'
                  fanfare plan new-podcast
                """)
    }

    private static func write(_ text: String, to path: String) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .withoutOverwriting)
        } catch {
            throw Failure(
                .cannotMake, "cannot write \(path): \(error.localizedDescription); check the folder's permissions")
        }
    }
}

/// The files of a new installation: the repository's examples, with paths below one folder.
enum StarterFiles {
    static var all: [(name: String, text: String)] {
        [("fanfare.yaml", configuration)] + ExampleFiles.all.filter { $0.name.hasSuffix("/new-podcast.yaml") }
    }

    /// The example configuration, with its paths beside the configuration file instead of in the system's folders.
    private static var configuration: String {
        EmbeddedFile.text("configuration.yaml")
            .replacing("/etc/fanfare/fanfare.yaml", with: "\u{0}fanfare.yaml")
            .replacing("LoadCredential=keys:/etc/fanfare/", with: "LoadCredential=keys:\u{0}")
            .replacing("/var/lib/fanfare/", with: "").replacing("/etc/fanfare/", with: "")
            .replacing("\u{0}", with: "/etc/fanfare/")
    }
}
