import CampaignFiles
package import Model

/// The stable shape of a campaign file in a list; keys are written in snake_case, times in ISO 8601 and UTC.
package struct CampaignResult: Codable, Hashable, Sendable {
    /// Of the file, without `.yaml`: what it is asked for by.
    package var name: String
    package var path: String
    /// Its name as the file says, under which its runs stand; this and what follows is absent where it could not be read.
    package var campaign: String?
    package var topic: String?
    package var pushType: String?
    package var priority: Int?
    package var template: String?
    /// `schedule`, `feed` or `hand`.
    package var startedBy: String?
    /// False: it has errors, and no run of it is started.
    package var ok: Bool
    package var errors: Int
    package var warnings: Int
    /// The nearest ones; empty for what does not start by itself.
    package var nextOccurrences: [ScheduleResult.Entry]
    /// Absent: it has none.
    package var lastRun: RunResult?
}

/// The stable shape of a campaign that is looked at: its text, what is wrong with it, and its templates.
package struct CampaignDetailResult: Codable, Hashable, Sendable {
    package var campaign: CampaignResult
    /// Absent where the file cannot be read as text.
    package var text: String?
    /// SHA-256 of the text, to be given with what replaces it; absent with the text.
    package var etag: String?
    /// As `fanfare validate` has them, those in its templates among them.
    package var problems: [ValidationResult.Problem]
    /// By locale, behind the variant's name if there is one.
    package var payloadMaxBytes: [String: Int]
    /// With their defaults; an empty one must be given to a run.
    package var variables: [String: String]
    package var variants: [String]
    package var templates: [TemplateDetailResult]
    /// Whether files may be written by way of the web here.
    package var editing: Bool
}

/// The stable shape of a template file in a list.
package struct TemplateResult: Codable, Hashable, Sendable {
    package var name: String
    package var path: String
    package var ok: Bool
    package var errors: Int
    package var warnings: Int
    /// In the order of the file; empty where nothing is localized.
    package var locales: [String]
    /// The campaign files that use it.
    package var campaigns: [String]
}

/// The stable shape of a template that is looked at.
package struct TemplateDetailResult: Codable, Hashable, Sendable {
    package var template: TemplateResult
    package var text: String?
    package var etag: String?
    /// Also those that a campaign finds in it.
    package var problems: [ValidationResult.Problem]
}

/// The stable shape of a file that was written.
package struct WrittenFileResult: Codable, Hashable, Sendable {
    package var name: String
    package var path: String
    package var etag: String
    package var isNew: Bool
    /// What is allowed and probably a mistake.
    package var warnings: [ValidationResult.Problem]
    /// The change that waits for release: the file was not written. Absent: it was.
    package var held: Int64?
}

extension ValidationResult.Problem {
    package init(_ diagnostic: Diagnostic) {
        self.init(
            path: diagnostic.path, line: diagnostic.line, column: diagnostic.column,
            severity: diagnostic.severity.rawValue, what: diagnostic.what, advice: diagnostic.advice)
    }

    /// As `fanfare validate` prints it.
    package var description: String {
        Diagnostic(
            path: path, line: line, column: column, severity: Diagnostic.Severity(rawValue: severity) ?? .error,
            what: what, advice: advice
        ).description
    }
}
