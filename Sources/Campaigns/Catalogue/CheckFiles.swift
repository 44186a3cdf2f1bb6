import CampaignFiles
import Foundation
package import Model
package import Store

/// Checks campaign, template and configuration files, and reports all problems of all files. Uses no store.
package struct CheckFiles: Sendable {
    /// The results of a check.
    package struct Checked: Sendable {
        package var checks: [CampaignCheck]
        /// The problems. A problem of a template that several campaigns use is listed once.
        package var diagnostics: [Diagnostic]

        package var hasErrors: Bool { diagnostics.contains { $0.severity == .error } }
        /// The device topics of the campaigns.
        package var topics: Set<String> { Set(checks.compactMap { $0.loaded?.source?.campaign.deviceTopic }) }

        /// Records for each campaign the languages whose devices get the default text.
        ///
        /// - Parameter languages: the number of devices in each language, by topic.
        package mutating func add(languages: [String: [String: Int]]) {
            for index in checks.indices where checks[index].isRight {
                guard let loaded = checks[index].loaded, let campaign = loaded.source?.campaign,
                    let known = languages[campaign.deviceTopic]
                else { continue }
                let found = FallbackLanguages(campaign, loaded.templates.map(\.template), known)
                guard !found.names.isEmpty else { continue }
                checks[index].fallbackLanguages = found.names
                checks[index].fallbacks = found.shown
            }
        }

        /// Whether there is no problem, not even a warning.
        package var isClean: Bool { diagnostics.isEmpty }
        package var result: ValidationResult { ValidationResult(checks, diagnostics) }

        /// The links in the campaigns' templates, each once. Templates that allow dead links are left out.
        package var links: [String] {
            checks.flatMap { check in linked(check).flatMap { $0.links } }.reduce(into: []) {
                if !$0.contains($1) { $0.append($1) }
            }
        }

        /// Adds a warning for each link that does not respond.
        ///
        /// - Parameter dead: the reason why a link does not respond, by address.
        package mutating func add(dead: [String: String]) {
            for index in checks.indices {
                let found = linked(checks[index]).flatMap { source, links in
                    links.compactMap { link in dead[link].map { Self.diagnostic(source, link, $0) } }
                }
                checks[index].diagnostics += found
                diagnostics += found.filter { !diagnostics.contains($0) }
            }
        }

        private func linked(_ check: CampaignCheck) -> [(source: TemplateSource, links: [String])] {
            let values = check.loaded?.source?.campaign.variables ?? [:]
            return (check.loaded?.templates ?? []).filter { !$0.template.allows(.deadLink) }
                .map { ($0, $0.template.links(values)) }
        }

        private static func diagnostic(_ source: TemplateSource, _ link: String, _ reason: String) -> Diagnostic {
            let location = source.locations["custom"] ?? source.locations["alert"] ?? SourceLocation()
            return Diagnostic(
                path: source.path, line: location.line, column: location.column, severity: .warning,
                what: "the link \(link) does not respond: \(reason)", advice: "correct the link, or publish the page",
                rule: .deadLink)
        }
    }

    private let configuration: Configuration?
    private let templates: String?
    private let configuredTemplates: @Sendable () throws -> String
    private let environment: [String: String]
    private let devices: [DeviceCount]
    private let now: Timestamp?
    private let hasRun: @Sendable (_ campaign: String, _ occurrence: String) -> Bool
    private let drafts: [String: String]
    private let values: StartValues

    /// - Parameters:
    ///   - configuration: if given, each campaign's app must be in it.
    ///   - templates: the folder of the templates; `nil` for the one beside the campaigns' folder, or the configured
    ///     one.
    ///   - configuredTemplates: returns the configured folder; throws if the configuration is missing or invalid.
    ///   - environment: environment variables, which override keys of a configuration file.
    ///   - devices: the device counts of the store, if there is one. They reveal campaigns that reach no device.
    ///   - now: if given, the check refuses a start in the past. A draft is refused only if it changes its file's
    ///     schedule.
    ///   - hasRun: returns whether an occurrence already has a run. Its start in the past is then no problem.
    ///   - drafts: texts that are not saved yet, by path. Each is checked as if it were in its file.
    ///   - values: the values that people gave for coming starts.
    package init(
        configuration: Configuration?, templates: String?,
        configuredTemplates: @escaping @Sendable () throws -> String, environment: [String: String],
        devices: [DeviceCount] = [], now: Timestamp? = nil,
        hasRun: @escaping @Sendable (_ campaign: String, _ occurrence: String) -> Bool = { _, _ in false },
        drafts: [String: String] = [:], values: StartValues = StartValues()
    ) {
        self.values = values
        self.now = now
        self.hasRun = hasRun
        self.configuration = configuration
        self.templates = templates
        self.configuredTemplates = configuredTemplates
        self.environment = environment
        self.devices = devices
        self.drafts = drafts
    }

    /// - Parameter paths: files, and folders whose YAML files are checked.
    package func check(_ paths: [String]) throws -> Checked {
        var checks = try paths.flatMap(expand).map(check)
        guard !checks.isEmpty else { throw Failure(.notFound, "no YAML files in \(paths.joined(separator: ", "))") }
        let campaigns = checks.compactMap(\.loaded?.source) + neighbours(of: checks)
        let files = Dictionary(campaigns.map { (FileHash.absolute($0.path), $0) }) { first, _ in first }
        let shared = Dictionary(
            grouping: SharedNames.check(files.values.sorted { $0.path < $1.path }), by: \.path)
        for index in checks.indices { checks[index].diagnostics += shared[checks[index].path, default: []] }
        Self.measure(&checks, campaigns)
        Self.share(&checks)
        return Checked(checks: checks, diagnostics: Self.unique(checks.flatMap(\.diagnostics)))
    }

    /// Returns the other campaigns of the configured folder, if some of its files are among the checked ones.
    private func neighbours(of checks: [CampaignCheck]) -> [LocatedCampaign] {
        guard let folder = configuration?.campaigns else { return [] }
        let checked = Set(checks.map { FileHash.absolute($0.path) })
        let home = FileHash.absolute(folder)
        guard checked.contains(where: { ($0 as NSString).deletingLastPathComponent == home }) else { return [] }
        return YAMLFolder.files(in: folder).filter { !checked.contains(FileHash.absolute($0)) }
            .compactMap { CampaignFolder(campaigns: "", templates: "").source(path: $0) }
    }

    /// Adds the problems that a campaign finds in its template to the template's own check, so that the template is
    /// not reported as ok.
    private static func share(_ checks: inout [CampaignCheck]) {
        let found = Dictionary(grouping: unique(checks.flatMap(\.diagnostics))) { FileHash.absolute($0.path) }
        for index in checks.indices {
            let own = Set(checks[index].diagnostics)
            checks[index].diagnostics += found[FileHash.absolute(checks[index].path), default: []]
                .filter { !own.contains($0) }
        }
    }

    private func expand(_ path: String) throws -> [String] {
        if drafts[path] != nil { return [path] }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw Failure(.notFound, "no file or folder \(path); check the path")
        }
        return isFolder.boolValue ? YAMLFolder.files(in: path) : [path]
    }

    private func check(_ path: String) throws -> CampaignCheck {
        switch kind(of: path) {
        case .template: templateCheck(path)
        case .configuration:
            CampaignCheck(
                path: path, diagnostics: ConfigurationFile.load(path: path, environment: environment).1)
        case .campaign:
            withMissingValues(
                withStart(
                    withTopics(
                        CampaignCheck.check(
                            path: path, templatesFolder: try templatesFolder(besides: path),
                            configuration: configuration, usualFeedback: configuration?.usualFeedback ?? [:],
                            drafts: drafts))))
        }
    }

    /// Adds the errors of a scheduled campaign whose variables have no value, unless its only start is over.
    private func withMissingValues(_ check: CampaignCheck) -> CampaignCheck {
        guard let loaded = check.loaded, let source = loaded.source else { return check }
        let timetable = source.campaign.schedule.flatMap(Timetable.init)
        if let now, let timetable, timetable.isOnce, timetable.next(after: now) == nil { return check }
        var check = check
        let nexts = values.after.flatMap { timetable?.occurrences(after: $0, through: nil, atMost: 2) } ?? []
        check.diagnostics += TemplateLint.missingValues(
            source, loaded.templates,
            nexts: nexts.map { ($0.wall.spoken, values.values(of: source.campaign, $0)) })
        return check
    }

    /// Adds an error if the campaign's only start is past and has no run. Adds a warning if that start is due now.
    private func withStart(_ check: CampaignCheck) -> CampaignCheck {
        guard let now, let source = check.loaded?.source, let past = PastStart(source.campaign, now: now),
            setsSchedule(check.path, source.campaign), !hasRun(source.campaign.name, past.occurrence.key)
        else { return check }
        var check = check
        let location = source.locations["schedule"] ?? SourceLocation()
        check.diagnostics.append(
            Diagnostic(
                path: check.path, line: location.line, column: location.column,
                severity: past.isDue ? .warning : .error, what: "schedule: \(past.summary)",
                advice: past.isDue
                    ? "the daemon or `fanfare run --due` starts it; to prevent a start now, set a later time"
                    : "set a future time, or omit `at` and start it with `fanfare run \(source.campaign.name)`"
            ))
        return check
    }

    /// Returns whether to check a file's start. A draft with an unchanged schedule is not checked, so that a
    /// finished campaign can still be edited. If there are drafts, no other file is checked.
    private func setsSchedule(_ path: String, _ campaign: Campaign) -> Bool {
        guard !drafts.isEmpty else { return true }
        guard drafts[path] != nil else { return false }
        let saved = CampaignFolder(campaigns: "", templates: "").source(path: path)?.campaign
        return saved?.schedule != campaign.schedule
    }

    /// Returns the kind of a file. A file in a configured folder has the kind of that folder, whatever its content,
    /// because the daemon reads it as that kind.
    private func kind(of path: String) -> JSONSchema.File {
        if let configuration {
            let home = (FileHash.absolute(path) as NSString).deletingLastPathComponent
            let campaigns = FileHash.absolute(configuration.campaigns)
            let templates = FileHash.absolute(configuration.templates)
            if home == campaigns, campaigns != templates { return .campaign }
            if home == templates, campaigns != templates { return .template }
        }
        return JSONSchema.File.of(path: path, unsaved: drafts[path])
    }

    private func templateCheck(_ path: String) -> CampaignCheck {
        let (source, diagnostics) =
            drafts[path].map { TemplateFile.source(text: $0, path: path) }
            ?? TemplateFile.load(path: path)
        var check = CampaignCheck(
            path: path, diagnostics: diagnostics + (source.map { TemplateLint.check($0) } ?? []))
        check.template = diagnostics.allSatisfy { $0.severity == .warning } ? source : nil
        return check
    }

    /// Adds the problems with the size of each template's payloads. The limit is that of the campaigns that use the
    /// template, or 4,096 bytes if there are none.
    private static func measure(_ checks: inout [CampaignCheck], _ campaigns: [LocatedCampaign]) {
        for index in checks.indices {
            guard let source = checks[index].template else { continue }
            let users = campaigns.map(\.campaign).filter { $0.templatesNamed.contains(source.template.name) }
            let limit = users.map(\.pushType.payloadMaxBytes).max() ?? PushType.alert.payloadMaxBytes
            checks[index].diagnostics += TemplateSize.check(source, limitBytes: limit)
        }
    }

    /// Adds a warning that names the topics of the app's devices, if no device is registered under the campaign's
    /// topic.
    private func withTopics(_ check: CampaignCheck) -> CampaignCheck {
        guard let source = check.loaded?.source, check.isRight,
            let other = TopicMismatch(source.campaign, devices)
        else { return check }
        var check = check
        check.diagnostics.append(other.diagnostic(of: source))
        return check
    }

    private func templatesFolder(besides path: String) throws -> String {
        if let templates { return templates }
        let parent = ((path as NSString).deletingLastPathComponent as NSString).deletingLastPathComponent
        let beside = parent.isEmpty ? "templates" : "\(parent)/templates"
        if FileManager.default.fileExists(atPath: beside) { return beside }
        return try configuredTemplates()
    }

    private static func unique(_ diagnostics: [Diagnostic]) -> [Diagnostic] {
        var seen: Set<Diagnostic> = []
        return diagnostics.filter { seen.insert($0).inserted }
    }
}

/// The result of checking files: the stable shape of `validate --json`.
package struct ValidationResult: Codable, Sendable {
    package struct Problem: Codable, Hashable, Sendable {
        package var path: String
        package var line: Int
        package var column: Int
        package var severity: String
        package var what: String
        package var advice: String
        /// The rule that a template names under lint: {allow: [...]} to permit the finding; absent if it cannot be
        /// permitted.
        package var rule: String?
    }

    package struct File: Codable, Hashable, Sendable {
        package var path: String
        package var ok: Bool
        /// The largest payload, by locale. If there are variants, the variant's name precedes the locale.
        package var payloadMaxBytes: [String: Int]
        /// The languages of the app's devices in which the campaign has no text, most devices first. Absent without
        /// a store.
        package var fallbackLanguages: [String]?
    }

    package var files: [File]
    package var problems: [Problem]
    /// `true` if the text would wait for release once saved, because the caller may not start runs and the text
    /// changes what starts automatically. Absent otherwise.
    package var held: Bool?

    package init(_ checks: [CampaignCheck], _ diagnostics: [Diagnostic]) {
        files = checks.map { check in
            File(
                path: check.path, ok: check.isRight,
                payloadMaxBytes: Dictionary(check.sizes.map { ($0.text, $0.bytes) }) { max($0, $1) },
                fallbackLanguages: check.fallbackLanguages)
        }
        problems = diagnostics.map {
            Problem(
                path: $0.path, line: $0.line, column: $0.column, severity: $0.severity.rawValue, what: $0.what,
                advice: $0.advice, rule: $0.rule?.rawValue)
        }
    }
}
