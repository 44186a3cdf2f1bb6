import CampaignFiles
package import Model

/// The stable shape of a campaign file in a list; keys are written in snake_case, times in ISO 8601 and UTC.
package struct CampaignResult: Codable, Hashable, Sendable {
    /// The name of the file without `.yaml`, by which a caller requests the campaign.
    package var name: String
    package var path: String
    /// The campaign's name in the file, under which its runs are stored. Absent if the file could not be read; the
    /// properties from `topic` to `startedBy` are then absent as well.
    package var campaign: String?
    package var topic: String?
    package var pushType: String?
    package var priority: Int?
    package var template: String?
    /// `schedule`, `feed` or `hand`.
    package var startedBy: String?
    /// `false` if the file has errors, so that no run of it is started.
    package var ok: Bool
    package var errors: Int
    package var warnings: Int
    /// The next occurrences; empty for a campaign that no schedule starts.
    package var nextOccurrences: [ScheduleResult.Entry]
    /// Absent if the campaign has no run.
    package var lastRun: RunResult?
}

/// The stable shape of one campaign: its text, its problems, and its templates.
package struct CampaignDetailResult: Codable, Hashable, Sendable {
    package var campaign: CampaignResult
    /// Absent if the file cannot be read as text.
    package var text: String?
    /// The SHA-256 of the text, which a caller gives to replace the text. Absent if `text` is absent.
    package var etag: String?
    /// The problems as `fanfare validate` reports them, including those in the campaign's templates.
    package var problems: [ValidationResult.Problem]
    /// The largest payload, by locale. If there are variants, the variant's name precedes the locale.
    package var payloadMaxBytes: [String: Int]
    /// The variables with their defaults. A run must give a value for each empty one.
    package var variables: [String: String]
    package var variants: [String]
    package var templates: [TemplateDetailResult]
    /// Whether files may be written through the web.
    package var editing: Bool
}

/// The stable shape of a template file in a list.
package struct TemplateResult: Codable, Hashable, Sendable {
    package var name: String
    package var path: String
    package var ok: Bool
    package var errors: Int
    package var warnings: Int
    /// The locales in the order of the file; empty if the template is not localized.
    package var locales: [String]
    /// The campaign files that use it.
    package var campaigns: [String]
}

/// The stable shape of one template with its text and its problems.
package struct TemplateDetailResult: Codable, Hashable, Sendable {
    package var template: TemplateResult
    package var text: String?
    package var etag: String?
    /// The problems, including those that a campaign finds in the template.
    package var problems: [ValidationResult.Problem]
}

/// The stable shape of a file that was written.
package struct WrittenFileResult: Codable, Hashable, Sendable {
    package var name: String
    package var path: String
    package var etag: String
    package var isNew: Bool
    /// The problems that do not prevent saving but are probably mistakes.
    package var warnings: [ValidationResult.Problem]
    /// The id of the change that waits for release instead of being written. Absent if no change waits.
    package var held: Int64?
}

extension ValidationResult.Problem {
    package init(_ diagnostic: Diagnostic) {
        self.init(
            path: diagnostic.path, line: diagnostic.line, column: diagnostic.column,
            severity: diagnostic.severity.rawValue, what: diagnostic.what, advice: diagnostic.advice)
    }

    /// The problem as `fanfare validate` prints it.
    package var description: String {
        Diagnostic(
            path: path, line: line, column: column, severity: Diagnostic.Severity(rawValue: severity) ?? .error,
            what: what, advice: advice
        ).description
    }
}
