import CampaignFiles
package import Foundation
package import Model
import Platform
package import Store

/// Lists, reads, checks and writes the campaign and template files of the configured folders. Writing requires
/// `http.editing`. The files are the source of truth: each result is read from them.
package struct ManageFiles: Sendable {
    /// The maximum size of a text that arrives through the web.
    package static let bytesMax = 256 << 10
    private static let occurrencesShown = 3

    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case campaign, template
    }

    let configuration: Configuration
    let store: any RunLog & AuditLog & ChangeLog & OccurrenceValueLog
    let waiting: WaitingCampaigns
    private let zone: TimeZone

    /// - Parameters:
    ///   - zone: the operator's time zone.
    ///   - waiting: the cache of texts that wait for release, in a process that serves many requests.
    package init(
        configuration: Configuration, store: any RunLog & AuditLog & ChangeLog & OccurrenceValueLog, zone: TimeZone,
        waiting: WaitingCampaigns = WaitingCampaigns()
    ) {
        self.waiting = waiting
        var configuration = configuration
        configuration.campaigns = Self.withoutSlash(configuration.campaigns)
        configuration.templates = Self.withoutSlash(configuration.templates)
        self.configuration = configuration
        self.store = store
        self.zone = zone
    }

    /// Throws ``FileRefusal/editingIsOff`` unless the configuration allows changes of files through the web.
    package func requireEditing() throws {
        guard configuration.http.editing else { throw FileRefusal.editingIsOff }
    }

    /// Removes a slash at the end, so that each file has one path however its folder is written.
    private static func withoutSlash(_ folder: String) -> String {
        folder.count > 1 && folder.hasSuffix("/") ? String(folder.dropLast()) : folder
    }

    // MARK: Campaigns

    /// Returns all campaign files of the folder, valid or not, in the order of their names.
    package func campaigns(now: Timestamp) async throws -> [CampaignResult] {
        let values = try await StartValues.read(store, now: now)
        let checked = try checked(YAMLFolder.files(in: configuration.campaigns), values: values)
        var results: [CampaignResult] = []
        for check in checked?.checks ?? [] { results.append(try await result(check, values, now: now)) }
        return results
    }

    package func campaign(_ name: String, now: Timestamp) async throws -> CampaignDetailResult {
        let path = try path(.campaign, name)
        let values = try await StartValues.read(store, now: now)
        guard let checked = try checked([path], values: values), let check = checked.checks.first else {
            throw missing(.campaign, name)
        }
        let (text, etag) = Self.text(of: path)
        let campaign = check.loaded?.source?.campaign
        let uses = uses()
        return CampaignDetailResult(
            campaign: try await result(check, values, now: now), text: text, etag: etag,
            problems: checked.diagnostics.map { .init($0) },
            payloadMaxBytes: Dictionary(check.sizes.map { ($0.text, $0.bytes) }) { max($0, $1) },
            variables: campaign?.variables ?? [:], variants: campaign?.variants.map(\.name) ?? [],
            templates: try campaign?.templatesNamed.compactMap { name in
                isThere(.template, name) ? try template(name, uses, asFoundIn: checked.diagnostics) : nil
            } ?? [], editing: configuration.http.editing)
    }

    /// Returns the topic of a campaign's app; `nil` if its file does not name it. Throws if there is no such file.
    package func topic(ofCampaign name: String) throws -> String? {
        located(try path(.campaign, name))?.campaign.topic
    }

    /// Returns the name under which the campaign's runs are stored; `nil` if there is no such file, or the file
    /// gives no name.
    func runName(ofCampaign name: String) -> String? {
        let found = (try? path(.campaign, name)).flatMap(located)?.campaign.name
        return found.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Whether the folder has a campaign file that cannot be parsed at all, so that not even its app is known.
    package var hasUnreadableCampaigns: Bool {
        YAMLFolder.files(in: configuration.campaigns).contains { located($0) == nil }
    }

    /// Returns the topic that an unsaved text names; `nil` if nothing in the text could be understood.
    package func topic(ofText text: String, name: String) -> String? {
        campaign(ofText: text, name: name)?.topic
    }

    /// Returns the templates that an unsaved text names.
    package func templates(ofText text: String, name: String) -> [String] {
        campaign(ofText: text, name: name)?.templatesNamed ?? []
    }

    func campaign(ofText text: String, name: String) -> Campaign? {
        let path = newPath(.campaign, name)
        return CampaignFolder(campaigns: "", templates: "", drafts: [path: text]).source(path: path)?.campaign
    }

    /// Returns the campaign in the file, valid or not; `nil` if nothing in it could be understood.
    func campaign(ofFile name: String) -> Campaign? { (try? path(.campaign, name)).flatMap(located)?.campaign }

    /// The campaigns of the folder; `nil` for each file in which nothing could be understood.
    var campaigns: [Campaign?] {
        YAMLFolder.files(in: configuration.campaigns).map { campaign(ofPath: $0) }
    }

    func campaign(ofPath path: String) -> Campaign? { located(path)?.campaign }

    /// Returns the campaign files of the selected apps. If a file's app cannot be read, `isMeant` gets an empty
    /// topic.
    package func paths(ofApps isMeant: (_ topic: String) -> Bool) -> Set<String> {
        Set(YAMLFolder.files(in: configuration.campaigns).filter { isMeant(located($0)?.campaign.topic ?? "") })
    }

    /// Returns whether a person can plan and start the campaign. A scheduled campaign without values for its variables
    /// has errors, but a person can still give the values.
    package func mayStart(_ campaign: CampaignResult) -> Bool { campaign.ok || (try? source(campaign.name)) != nil }

    /// Returns a campaign to plan, render or start. Throws if its files have errors.
    ///
    /// - Parameter drafts: texts that are not saved yet, by path.
    package func source(_ name: String, drafts: [String: String] = [:]) throws -> CampaignSource {
        try CampaignSource.load(path: path(.campaign, name), configuration, drafts: drafts)
    }

    /// Returns the campaign with this name, whatever its file is called. Throws if no file defines it, or if the file
    /// that counts has errors.
    package func source(ofCampaignNamed name: String) throws -> CampaignSource {
        let paths = YAMLFolder.files(in: configuration.campaigns).filter { campaign(ofPath: $0)?.name == name }
        guard let path = SharedNames.owner(of: name, paths) else { throw missing(.campaign, name) }
        return try CampaignSource.load(path: path, configuration)
    }

    private func result(_ check: CampaignCheck, _ values: StartValues, now: Timestamp) async throws -> CampaignResult {
        let errors = check.diagnostics.count { $0.severity == .error }
        var result = CampaignResult(
            name: Self.name(ofPath: check.path), path: check.path, ok: errors == 0, errors: errors,
            warnings: check.diagnostics.count - errors, nextOccurrences: [])
        guard let campaign = check.loaded?.source?.campaign, !campaign.name.isEmpty else { return result }
        result.campaign = campaign.name
        result.topic = campaign.topic.isEmpty ? nil : campaign.topic
        result.pushType = campaign.pushType.rawValue
        result.priority = campaign.priority.rawValue
        result.template = campaign.template
        let timetable = campaign.schedule.flatMap(Timetable.init)
        result.startedBy = campaign.feed != nil ? "feed" : timetable != nil ? "schedule" : "hand"
        result.nextOccurrences = starts(check, values, atMost: Self.occurrencesShown, now: now)
        // A campaign of another app may have had the same name: leave out that campaign's run.
        result.lastRun = try await store.latestRun(campaign: campaign.name)
            .flatMap { $0.definition.campaign.topic == campaign.topic ? RunResult($0) : nil }
        return result
    }

    /// Returns the next starts of a campaign as its files would be with the unsaved texts.
    package func starts(
        _ name: String, drafts: [String: String], atMost count: Int, now: Timestamp
    ) async throws -> [ScheduleResult.Entry] {
        let path = try path(.campaign, name)
        let check = CampaignCheck.check(
            path: path, templatesFolder: configuration.templates, usualFeedback: configuration.usualFeedback,
            drafts: drafts)
        return starts(check, try await .read(store, now: now), atMost: count, now: now)
    }

    private func starts(
        _ check: CampaignCheck, _ values: StartValues, atMost count: Int, now: Timestamp
    ) -> [ScheduleResult.Entry] {
        guard let campaign = check.loaded?.source?.campaign else { return [] }
        let timetable = campaign.schedule.flatMap(Timetable.init)
        let content = check.loaded?.content
        let templates = content.map { [$0.template] + $0.variantTemplates.values } ?? []
        return (timetable?.occurrences(after: now, through: nil, atMost: count) ?? []).map { occurrence in
            let given = values.values(of: campaign, occurrence)
            let missing = campaign.missingValues(in: templates, given: given)
            return ScheduleResult.Entry(campaign, occurrence, timetable, missing: missing, values: given, zone: zone)
        }
    }

    // MARK: Templates

    package func templates() throws -> [TemplateResult] {
        let diagnostics = try checked(
            YAMLFolder.files(in: configuration.templates) + YAMLFolder.files(in: configuration.campaigns))?.diagnostics
        let uses = uses()
        return YAMLFolder.files(in: configuration.templates).map { result(ofTemplate: $0, diagnostics ?? [], uses) }
    }

    package func template(_ name: String) throws -> TemplateDetailResult {
        let path = try path(.template, name)
        let uses = uses()
        let users = uses[name, default: []].map { "\(configuration.campaigns)/\($0.file)" }
        return try template(name, uses, asFoundIn: checked([path] + users)?.diagnostics ?? [])
    }

    /// Returns the topics of the apps whose campaigns use a template; empty if no campaign uses it.
    package func topics(ofTemplate name: String) -> [String] { uses()[name, default: []].map(\.topic) }

    private func template(
        _ name: String, _ uses: [String: [Use]], asFoundIn diagnostics: [Diagnostic]
    ) throws -> TemplateDetailResult {
        let path = try path(.template, name)
        let (text, etag) = Self.text(of: path)
        let own = diagnostics.filter { FileHash.absolute($0.path) == FileHash.absolute(path) }
        return TemplateDetailResult(
            template: result(ofTemplate: path, diagnostics, uses), text: text, etag: etag,
            problems: own.map { .init($0) })
    }

    private func result(
        ofTemplate path: String, _ diagnostics: [Diagnostic], _ uses: [String: [Use]]
    ) -> TemplateResult {
        let own = diagnostics.filter { FileHash.absolute($0.path) == FileHash.absolute(path) }
        let errors = own.count { $0.severity == .error }
        let name = Self.name(ofPath: path)
        return TemplateResult(
            name: name, path: path, ok: errors == 0, errors: errors, warnings: own.count - errors,
            locales: TemplateFile.load(path: path).0?.template.locales.map(\.description) ?? [],
            campaigns: uses[name, default: []].map(\.name))
    }

    /// A campaign file that names a template.
    private struct Use {
        var name: String
        var file: String
        var topic: String
    }

    /// Returns the uses by template name.
    private func uses() -> [String: [Use]] {
        var uses: [String: [Use]] = [:]
        for path in YAMLFolder.files(in: configuration.campaigns) {
            guard let campaign = located(path)?.campaign else { continue }
            let use = Use(
                name: Self.name(ofPath: path), file: (path as NSString).lastPathComponent, topic: campaign.topic)
            for name in campaign.templatesNamed { uses[name, default: []].append(use) }
        }
        return uses
    }

    // MARK: Checking a text

    /// Returns what `fanfare validate` would report if the file held this text. Writes nothing to disk. A template is
    /// checked together with the campaigns that use it.
    ///
    /// - Parameter beside: the unsaved texts of other files, by path.
    package func validate(
        _ kind: Kind, _ name: String, text: String, beside: [String: String] = [:], now: Timestamp
    ) async throws -> ValidationResult {
        let path = try pathOrNew(kind, name)
        try Self.requireSize(text, path)
        let starts = try await starts(of: text, kind, name, now: now)
        let drafts = beside.merging([path: text]) { $1 }
        guard let checked = try checked([path] + users(kind, name), drafts: drafts, starts, values: starts.values)
        else {
            throw missing(kind, name)
        }
        return checked.result
    }

    /// Returns the errors that a text would cause, in itself and in other files, and the warnings in the text. A start
    /// without values is only a warning here, because a person gives the values once the file is saved.
    ///
    /// - Parameter beside: the texts that other files get with it, by path.
    func errors(
        of text: NewText, path: String, beside: [String: String], now: Timestamp
    ) async throws -> (errors: [Diagnostic], warnings: [Diagnostic]) {
        let (kind, name) = (text.kind, text.name)
        let starts = try await starts(of: text.text, kind, name, now: now)
        let users = users(kind, name)
        let saved = users + (isThere(kind, name) ? [path] : [])
        let before = Set(try checked(saved, values: starts.values)?.diagnostics ?? [])
        let drafts = beside.merging([path: text.text]) { $1 }
        let found = try checked([path] + users, drafts: drafts, starts, values: starts.values)?.diagnostics ?? []
        return (
            found.filter { $0.preventsSaving && ($0.path == path || !before.contains($0)) },
            found.filter { !$0.preventsSaving && $0.path == path }
        )
    }

    private func users(_ kind: Kind, _ name: String) -> [String] {
        kind == .campaign ? [] : uses()[name, default: []].map { "\(configuration.campaigns)/\($0.file)" }
    }

    /// The facts that the check for a start in the past needs.
    private struct Starts {
        var now: Timestamp
        /// The due and past starts that have a run, each as `campaign/occurrence`.
        var started: Set<String>
        /// The values that people gave for coming starts.
        var values: StartValues
    }

    private func starts(of text: String, _ kind: Kind, _ name: String, now: Timestamp) async throws -> Starts {
        let campaign = kind == .campaign ? campaign(ofText: text, name: name) : nil
        return Starts(
            now: now, started: try await store.startedPast(campaign.map { [$0] } ?? [], now: now),
            values: try await .read(store, now: now))
    }

    /// Returns `nil` if there are no paths.
    private func checked(
        _ paths: [String], drafts: [String: String] = [:], _ starts: Starts? = nil, values: StartValues = StartValues()
    ) throws -> CheckFiles.Checked? {
        guard !paths.isEmpty else { return nil }
        let folder = configuration.templates
        let started = starts?.started ?? []
        return try CheckFiles(
            configuration: configuration, templates: folder, configuredTemplates: { folder }, environment: [:],
            now: starts?.now, hasRun: { started.contains("\($0)/\($1)") }, drafts: drafts,
            values: values
        ).check(paths)
    }

    private func located(_ path: String) -> LocatedCampaign? {
        CampaignFolder(campaigns: "", templates: "").source(path: path)
    }
}

/// The paths of files.
extension ManageFiles {
    package func folder(_ kind: Kind) -> String {
        kind == .campaign ? configuration.campaigns : configuration.templates
    }

    func newPath(_ kind: Kind, _ name: String) -> String { "\(folder(kind))/\(name).yaml" }

    /// Returns the path of an existing file of the folder. Throws for any other name, including a name that contains a
    /// path.
    package func path(_ kind: Kind, _ name: String) throws -> String {
        guard let path = YAMLFolder.files(in: folder(kind)).first(where: { Self.name(ofPath: $0) == name }) else {
            throw missing(kind, name)
        }
        return path
    }

    /// Returns the path of an existing file, or the path that a new file of that name gets.
    package func pathOrNew(_ kind: Kind, _ name: String) throws -> String {
        if let path = try? path(kind, name) { return path }
        if let problem = FileName.problem(with: name) { throw FileRefusal.unsuitable(problem) }
        return newPath(kind, name)
    }

    func isThere(_ kind: Kind, _ name: String) -> Bool { (try? path(kind, name)) != nil }

    /// Returns `x` for `x.yaml`. Returns the whole name of `x.yml`, because a look-up by the short name does not find
    /// it.
    static func name(ofPath path: String) -> String {
        let file = (path as NSString).lastPathComponent
        return file.hasSuffix(".yaml") ? String(file.dropLast(5)) : file
    }

    static func requireSize(_ text: String, _ path: String) throws {
        guard text.utf8.count <= bytesMax else { throw FileRefusal.tooLarge(file: path, bytes: text.utf8.count) }
    }

    /// Returns `nil` twice for a file that is not text. No caller can see such a file, and so no caller can replace it.
    static func text(of path: String) -> (text: String?, etag: String?) {
        guard let data = try? RegularFile.read(path), let text = String(validating: data, as: UTF8.self) else {
            return (nil, nil)
        }
        return (text, Digest.sha256Hex([UInt8](data)))
    }

    private func missing(_ kind: Kind, _ name: String) -> Failure {
        // Suggest no name: the nearest one may be that of another app's file.
        Failure(
            .notFound,
            "no \(kind.rawValue) \"\(name)\" in \(folder(kind)); `fanfare validate` lists the files")
    }
}
