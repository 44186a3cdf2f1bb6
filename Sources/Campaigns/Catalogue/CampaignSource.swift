import CampaignFiles
import Foundation
package import Model
import Platform

/// A campaign file with its templates, found by name or path and free of errors. The files are read once, so that
/// ``hashes`` are those of the texts that ``campaign`` and the templates came from.
package struct CampaignSource {
    @Shared package var campaign: Campaign
    @Shared package var template: Template
    package var variantTemplates: [String: Template]
    package var warnings: [Diagnostic]
    /// The SHA-256 in hex of each file as it was read, by absolute path: the campaign's file and those of its
    /// templates, including its prepared correction.
    package let hashes: [String: String]

    /// - Parameter nameOrPath: `new-podcast`, looked up in the configured folder, or the path of a file.
    package static func load(_ nameOrPath: String, _ configuration: Configuration) throws -> CampaignSource {
        try load(path: path(of: nameOrPath, in: configuration.campaigns), configuration)
    }

    /// - Parameter drafts: texts that are not saved yet, by path.
    static func load(
        path: String, _ configuration: Configuration, drafts: [String: String] = [:]
    ) throws -> CampaignSource {
        let folder = (path as NSString).deletingLastPathComponent
        let checked = try AtomicFile.reading([folder.isEmpty ? "." : folder, configuration.templates]) {
            CampaignCheck.check(
                path: path, templatesFolder: configuration.templates, usualFeedback: configuration.usualFeedback,
                drafts: drafts)
        }
        guard var source = CampaignSource(checked) else { throw Failure(.invalidData, checked.diagnostics) }
        source.warnings += checked.loaded?.source.map { CapClassRules.check($0, configuration) } ?? []
        return source
    }

    /// Returns whether the text is a file's path, not a campaign's name.
    package static func isPath(_ nameOrPath: String) -> Bool {
        nameOrPath.contains("/") || nameOrPath.hasSuffix(".yaml") || nameOrPath.hasSuffix(".yml")
    }

    private static func path(of nameOrPath: String, in folder: String) throws -> String {
        if isPath(nameOrPath) {
            guard FileManager.default.fileExists(atPath: nameOrPath) else {
                throw Failure(.notFound, "no campaign file \(nameOrPath); check the path")
            }
            return nameOrPath
        }
        let path = "\(folder)/\(nameOrPath).yaml"
        if FileManager.default.fileExists(atPath: path) { return path }
        try requireFolder(folder)
        let suggestion = Suggestion.nearest(to: nameOrPath, among: YAMLFolder.names(in: folder))
        throw Failure(
            .notFound,
            "no campaign \"\(nameOrPath)\" in \(folder); "
                + (suggestion.map { "did you mean \"\($0)\"?" } ?? "`fanfare validate` lists the campaigns"))
    }

    /// Throws unless the folder of campaigns can be read.
    package static func requireFolder(_ folder: String) throws {
        guard case .failure(let fault) = YAMLFolder.listing(of: folder) else { return }
        throw Failure(
            .configuration,
            "the folder of campaigns, \(folder), cannot be read: \(fault); put it back, or correct `campaigns` in the "
                + "configuration")
    }
}

extension Campaign {
    /// The names of all templates that belong to the campaign, each once: its own, those of its variants, and its
    /// prepared correction. Every check of which campaigns use a template relies on this list.
    package var templatesNamed: [String] {
        var seen: Set<String> = [""]
        let all = [template] + variants.map(\.template) + [correction].compactMap(\.self)
        return all.filter { seen.insert($0).inserted }
    }
}

/// The YAML files of a folder, in the order of their names.
package enum YAMLFolder {
    package static func files(in folder: String) -> [String] { (try? listing(of: folder).get()) ?? [] }

    /// Returns the files, or the reason why the folder cannot be read.
    package static func listing(of folder: String) -> Result<[String], FolderFault> {
        let folder = folder.count > 1 && folder.hasSuffix("/") ? String(folder.dropLast()) : folder
        // Open the folder first: an error from Foundation does not always name the system's error.
        guard let stream = opendir(folder) else {
            return .failure(FolderFault(description: String(cString: strerror(errno))))
        }
        closedir(stream)
        do {
            let names = try FileManager.default.contentsOfDirectory(atPath: folder)
            return .success(
                names.filter { $0.hasSuffix(".yaml") || $0.hasSuffix(".yml") }.sorted().map { "\(folder)/\($0)" })
        } catch {
            return .failure(FolderFault(description: error.localizedDescription))
        }
    }

    /// The reason why a folder cannot be read, in the system's words.
    package struct FolderFault: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Returns the names of the files without folder and extension.
    package static func names(in folder: String) -> [String] {
        files(in: folder).map { (($0 as NSString).lastPathComponent as NSString).deletingPathExtension }
    }
}

extension CampaignSource {
    /// Returns `nil` if one of the files has errors.
    init?(_ check: CampaignCheck) {
        guard check.isRight, let loaded = check.loaded, let campaign = loaded.campaign, let template = loaded.template
        else { return nil }
        self.init(
            campaign: campaign, template: template, variantTemplates: loaded.variantTemplates,
            warnings: check.diagnostics, hashes: loaded.hashes)
    }

    /// Returns the definition with the variables' defaults.
    package func definition(plannedAt: Timestamp) -> RunDefinition {
        RunDefinition(
            campaign: campaign, template: template, variantTemplates: variantTemplates,
            variables: campaign.variables, plannedAt: plannedAt)
    }

    /// Returns the definition with the values given for this run. Throws ``RunVariables/VariableError`` for unknown
    /// names.
    package func definition(with variables: [String: String], plannedAt: Timestamp) throws -> RunDefinition {
        var definition = definition(plannedAt: plannedAt)
        definition.variables = try RunVariables.merged(campaign, with: variables)
        return definition
    }

    /// Returns the campaigns of the configured folder that a feed starts, and the paths of files that have errors.
    package static func withFeeds(in configuration: Configuration) -> (sources: [CampaignSource], broken: [String]) {
        var sources: [CampaignSource] = []
        var broken: [String] = []
        for path in YAMLFolder.files(in: configuration.campaigns) {
            do {
                let source = try load(path, configuration)
                if source.campaign.feed != nil { sources.append(source) }
            } catch {
                broken.append(path)
            }
        }
        return (sources, broken)
    }

    /// Throws unless a feed starts the campaign.
    package func requireFeed(_ name: String) throws -> FeedTrigger {
        guard let feed = campaign.feed else {
            throw Failure(.invalidData, "campaign \(name) has no feed; give it a `trigger` with one")
        }
        return feed
    }
}

/// A file that holds one secret, such as a password.
package enum SecretFile {
    /// Returns the file's text without white space at its ends.
    package static func text(of path: String, holding what: String) throws -> String {
        do throws(RegularFile.Fault) {
            return String(decoding: try RegularFile.read(path), as: UTF8.self)
                .trimmingCharacters(in: .whitespacesAndNewlines)
        } catch {
            throw Failure(.configuration, "cannot read \(what) from \(path): \(error.sentence)")
        }
    }
}

/// SHA-256 of files, in hex, as `sha256sum` prints it. The hash of a file whose content is also used comes from the
/// same read, see ``CampaignSource/hashes``.
package enum FileHash {
    package static func hash(of path: String) throws -> String {
        Digest.sha256Hex([UInt8](try RegularFile.read(path)))
    }

    package static func absolute(_ path: String) -> String { URL(fileURLWithPath: path).standardizedFileURL.path }
}

extension LoadedCampaign {
    /// The SHA-256 in hex of the campaign's file and of its readable templates, as they were read, by absolute path.
    var hashes: [String: String] {
        let own = source.map { [FileHash.absolute($0.path): $0.hash] } ?? [:]
        return templates.reduce(into: own) { $0.merge($1.hashes) { $1 } }
    }
}

extension TemplateSource {
    /// The SHA-256 in hex of the file as it was read, by absolute path.
    var hashes: [String: String] { [FileHash.absolute(path): hash] }
}

/// The values of a run's placeholders: the campaign's defaults, overridden by the values given at the start.
package enum RunVariables {
    package enum VariableError: Error, Hashable, CustomStringConvertible {
        case unknown(String, campaign: String, suggestion: String?)

        package var description: String {
            switch self {
            case .unknown(let name, let campaign, let suggestion):
                "campaign \(campaign) has no variable \"\(name)\"; "
                    + (suggestion.map { "did you mean \"\($0)\"?" } ?? "declare it under `variables`")
            }
        }
    }

    package static func merged(
        _ campaign: Campaign, with given: [String: String]
    ) throws(VariableError) -> [String: String] {
        for name in given.keys.sorted() where campaign.variables[name] == nil {
            let suggestion = Suggestion.nearest(to: name, among: campaign.variables.keys)
            throw .unknown(name, campaign: campaign.name, suggestion: suggestion)
        }
        return campaign.variables.merging(given) { $1 }
    }
}

extension RunDefinition {
    /// Returns the definition for display, and the variables that the templates use but that have no value. In the
    /// definition these variables have their names in angle brackets as values.
    package func filledForShow() -> (definition: RunDefinition, unset: [String]) {
        let templates = [template] + variantTemplates.values
        let unset = templates.reduce(into: Set<String>()) { $0.formUnion($1.unset(in: variables)) }.sorted()
        var definition = self
        for name in unset { definition.variables[name] = "<\(name)>" }
        return (definition, unset)
    }
}

extension Campaign {
    /// Returns the index of the variant with this name; `nil` if no name is given.
    package func variantIndex(named name: String?) throws -> Int? {
        guard let name else { return nil }
        if let index = variants.firstIndex(where: { $0.name == name }) { return index }
        let names = variants.map(\.name)
        let advice =
            Suggestion.nearest(to: name, among: names).map { "did you mean \"\($0)\"?" }
            ?? (names.isEmpty ? "the campaign has no variants" : "it has \(names.joined(separator: ", "))")
        throw Failure(.notFound, "campaign \(self.name) has no variant \"\(name)\"; \(advice)")
    }
}
