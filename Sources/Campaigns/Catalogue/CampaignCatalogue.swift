import Foundation
package import Model
import CampaignFiles

/// The campaigns of the configured folder as their files define them. A valid file is read again only after it has
/// changed.
///
/// If a file becomes invalid, its earlier campaign stays in force, and ``problems`` says so. If the folder cannot be
/// read or becomes empty, all campaigns stay in force, so that an unmounted file system ends no schedule. See ``loss``.
package struct CampaignCatalogue {
    package struct Problem: Hashable {
        package var path: String
        package var diagnostics: [Diagnostic]
        /// The problem of the folder itself; `nil` for a problem of a file.
        package var text: String?
        /// Whether an earlier version of the file stays in force.
        package var keepsOld: Bool

        /// The messages as `validate` prints them.
        package var messages: [String] { text.map { [$0] } ?? diagnostics.map(\.description) }
    }

    private struct Entry {
        /// The marks of the campaign's file and of the templates that it names, as they were when it was read.
        var marks: [String: FileMark?]
        var ready: ReadyCampaign?
        var diagnostics: [Diagnostic]
        /// The location of the campaign's name.
        var nameLocation = SourceLocation()

        /// Whether the files need not be read again. An error may have a cause outside them, such as a failing disk.
        var isCurrent: Bool { isRight && marks.allSatisfy { FileMark($0.key) == $0.value } }
        var isRight: Bool { diagnostics.allSatisfy { $0.severity == .warning } }
    }

    private var entries: [String: Entry] = [:]
    private var folder: String?
    /// The feedback of campaigns whose file does not say, as the files were read.
    private var usualFeedback: [String: CampaignFeedback] = [:]

    /// The reason why the folder cannot be used: it cannot be read, or it is now empty. `nil` otherwise. The
    /// campaigns that were read earlier stay in force.
    package private(set) var loss: Problem?

    package init() {}

    /// Reads again the campaigns whose files have changed, and returns the paths of their files. Reads all of them
    /// again if the usual feedback of an app has changed.
    ///
    /// - Parameter isAsked: whether a person requested the refresh. All files are then read again, and an empty folder
    ///   removes all campaigns. A folder that cannot be read removes none.
    @discardableResult
    package mutating func refresh(_ configuration: Configuration, isAsked: Bool = false) -> [String] {
        let campaigns = configuration.campaigns
        let hasSameFeedback = configuration.usualFeedback == usualFeedback
        let isSameFolder = folder.map { $0 == campaigns } ?? true
        let paths: [String]
        switch YAMLFolder.listing(of: campaigns) {
        case .failure(let fault):
            let remedy = "put the folder back, or create an empty folder to remove the campaigns, and reload"
            loss = lost(campaigns, "cannot be read (\(fault))", remedy)
            return []
        case .success(let found) where found.isEmpty && !entries.isEmpty && isSameFolder && !isAsked:
            loss = lost(campaigns, "is now empty", "put the files back, or reload to remove the campaigns")
            return []
        case .success(let found):
            paths = found
            loss = nil
        }
        folder = campaigns
        var current: [String: Entry] = [:]
        for path in paths { current[path] = entries[path] }
        let mayKeep = hasSameFeedback && !isAsked
        let changed = paths.filter { !(mayKeep && entries[$0]?.isCurrent == true) }
        // Nothing may start from a campaign of one save and a template of another. While a save is not finished, the
        // earlier campaigns stay in force.
        guard !changed.isEmpty,
            let read = try? AtomicFile.reading(
                [campaigns, configuration.templates],
                {
                    changed.map { ($0, Self.entry($0, configuration, before: entries[$0]?.ready)) }
                })
        else {
            entries = current
            return []
        }
        usualFeedback = configuration.usualFeedback
        entries = current.merging(read) { $1 }
        return changed
    }

    private func lost(_ folder: String, _ what: String, _ remedy: String) -> Problem {
        let count = entries.values.count { $0.ready != nil }
        let kept =
            switch count {
            case 0: "no campaign is loaded"
            case 1: "the campaign from it stays loaded"
            default: "the \(count) campaigns from it stay loaded"
            }
        let text = "\(folder): the folder \(what); \(kept); \(remedy) (`systemctl reload fanfare`)"
        return Problem(path: folder, diagnostics: [], text: text, keepsOld: count > 0)
    }

    /// The valid campaigns, in the order of their files. If two files define campaigns of the same name, the file
    /// with that name counts, or the first one if no file has that name.
    package var ready: [ReadyCampaign] {
        let owners = owners
        return sorted.compactMap { path, entry in
            entry.ready.flatMap { owners[$0.campaign.name] == path ? $0 : nil }
        }
    }

    /// The file that counts, by campaign name.
    private var owners: [String: String] {
        let paths = Dictionary(grouping: entries.keys) { entries[$0]?.ready?.campaign.name ?? "" }
        return Dictionary(
            uniqueKeysWithValues: paths.compactMap { name, paths in
                SharedNames.owner(of: name, paths).map { (name, $0) }
            })
    }

    /// The files with errors; warnings do not count.
    package var problems: [Problem] {
        let owners = owners
        return sorted.compactMap { path, entry in
            var diagnostics = entry.isRight ? [] : entry.diagnostics.filter { $0.severity == .error }
            if let campaign = entry.ready?.campaign, let owner = owners[campaign.name], owner != path {
                let isOther = entries[owner]?.ready?.campaign.topic != campaign.topic
                diagnostics.append(
                    SharedNames.shared(
                        campaign.name, at: entry.nameLocation, of: path, with: owner, isOfOtherApp: isOther,
                        owner: owner))
            }
            return diagnostics.isEmpty
                ? nil : Problem(path: path, diagnostics: diagnostics, keepsOld: !entry.isRight && entry.ready != nil)
        }
    }

    /// The names of the campaigns in the folder, valid or not, and the names of their files.
    package var names: Set<String> {
        Set(
            sorted.flatMap { path, entry in
                [Self.fileName(path), entry.ready?.campaign.name].compactMap(\.self)
            })
    }

    /// Returns the name under which a campaign's runs are stored. Accepts the campaign's name or its file's name;
    /// returns `nil` if the folder has neither.
    package func runName(of name: String) -> String? {
        if entries.values.contains(where: { $0.ready?.campaign.name == name }) { return name }
        return entries.first { Self.fileName($0.key) == name }.map { $0.value.ready?.campaign.name ?? name }
    }

    /// Returns `new-podcast` for `campaigns/new-podcast.yaml`.
    private static func fileName(_ path: String) -> String {
        ((path as NSString).lastPathComponent as NSString).deletingPathExtension
    }

    private var sorted: [(key: String, value: Entry)] { entries.sorted { $0.key < $1.key } }

    private static func entry(_ path: String, _ configuration: Configuration, before: ReadyCampaign?) -> Entry {
        let templates = configuration.templates
        // Take the marks before reading, so that the next refresh sees a change made during the read.
        let mark = FileMark(path)
        let folder = CampaignFolder(campaigns: "", templates: templates)
        var named = before?.campaign.templatesNamed ?? []
        var marks = Dictionary(named.map { (folder.templatePath($0), FileMark(folder.templatePath($0))) }) { $1 }
        let check = CampaignCheck.check(
            path: path, templatesFolder: templates, usualFeedback: configuration.usualFeedback)
        if let source = check.loaded?.source?.campaign {
            named = source.templatesNamed
            for name in named where marks[folder.templatePath(name)] == nil {
                marks[folder.templatePath(name)] = FileMark(folder.templatePath(name))
            }
        }
        marks[path] = mark
        var ready: ReadyCampaign?
        if let source = CampaignSource(check) {
            ready = ReadyCampaign(
                campaign: source.campaign, template: source.template, variantTemplates: source.variantTemplates,
                changedAt: mark?.changedAt ?? Timestamp(milliseconds: 0), files: source.hashes)
        }
        return Entry(
            marks: marks, ready: ready ?? before, diagnostics: check.diagnostics,
            nameLocation: check.loaded?.source?.nameLocation ?? SourceLocation())
    }
}
