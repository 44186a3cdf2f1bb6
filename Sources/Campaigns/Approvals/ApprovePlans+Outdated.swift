import CampaignFiles
import Model
import Store

/// The comparison of requests with the files as they are now.
extension ApprovePlans {
    /// The campaigns that one call has read, by name, because several requests may be for the same campaign.
    final class ReadCampaigns {
        enum Campaign {
            case source(CampaignSource)
            /// The file has errors, so that nothing starts from it.
            case broken
            case missing
        }

        private let files: ApprovalRules.Files
        private var known: [String: Campaign] = [:]

        init(_ files: ApprovalRules.Files) { self.files = files }

        func campaign(_ name: String) -> Campaign {
            if let campaign = known[name] { return campaign }
            let campaign = read(name)
            known[name] = campaign
            return campaign
        }

        private func read(_ name: String) -> Campaign {
            let paths = YAMLFolder.files(in: files.campaigns)
            // The file usually has the campaign's name.
            let own = paths.filter { $0.hasSuffix("/\(name).yaml") || $0.hasSuffix("/\(name).yml") }
            for path in own + paths.filter({ !own.contains($0) }) {
                // A save that is not finished leaves no campaign that could start.
                let read = try? AtomicFile.reading([files.campaigns, files.templates]) {
                    CampaignCheck.check(
                        path: path, templatesFolder: files.templates, usualFeedback: files.usualFeedback)
                }
                guard let check = read else { return .broken }
                guard check.loaded?.campaign?.name == name || own.contains(path) else { continue }
                guard let source = CampaignSource(check) else { return .broken }
                guard source.campaign.name == name else { continue }
                return .source(source)
            }
            return .missing
        }
    }

    /// Returns the result, marked if the files, a segment or the correction has changed since the request. A decided
    /// request is not compared.
    ///
    /// - Parameters:
    ///   - read: the campaigns that are already read; `nil` reads the request's own.
    ///   - correction: the prepared correction, if it is already read.
    func compared(
        _ result: ApprovalResult, _ request: ApprovalRequest, _ read: ReadCampaigns? = nil,
        correction: TemplateSource? = nil
    ) async throws -> ApprovalResult {
        guard request.state == .open, let files = rules?.files else { return result }
        var result = result
        if try await isOutdated(request, read ?? ReadCampaigns(files), correction) { result.isOutdated = true }
        return result
    }

    private func isOutdated(
        _ request: ApprovalRequest, _ read: ReadCampaigns, _ correction: TemplateSource?
    ) async throws -> Bool {
        let definition = request.definition
        let now = try await digest(definition, request.occurrence, correction?.hashes ?? [:])
        if now.text != request.digest { return true }
        if definition.correction != nil {
            guard definition.correction?.kind == .replace, let templates = rules?.files?.templates else { return false }
            let path = CampaignFolder(campaigns: "", templates: templates).templatePath(definition.template.name)
            return TemplateFile.load(path: path).0?.template != definition.template
        }
        switch read.campaign(request.campaign) {
        case .broken: return true
        // A person may start a campaign from a file outside the folder. The schedule starts those in it.
        case .missing: return !request.occurrence.isEmpty
        case .source(let source): return try await !defines(source, request)
        }
    }

    /// Returns whether a start from the file would send what the request shows.
    private func defines(_ source: CampaignSource, _ request: ApprovalRequest) async throws -> Bool {
        let definition = request.definition
        let campaign = source.campaign
        var values = definition.variables
        // The schedule sends the values that a person gave for the start, or the defaults. A feed item has its own.
        if !request.occurrence.isEmpty, campaign.feed == nil {
            let given = try await store.values(campaign: campaign.name, occurrence: request.occurrence)?.variables
            values = campaign.variables.merging(campaign.declared(given ?? [:])) { $1 }
        }
        guard let now = try? source.definition(with: values, plannedAt: definition.plannedAt) else { return false }
        return try ContentHash(now) == ContentHash(definition)
    }
}
