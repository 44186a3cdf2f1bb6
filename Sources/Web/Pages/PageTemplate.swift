import Mustache

/// The templates of the pages and of the report file. Each raw value is the name of a file without its extension:
/// `report-sum` means `Templates/report-sum.mustache`. Another template includes it as `{{>report-sum}}`.
enum PageTemplate: String, CaseIterable, Sendable {
    case deliveries
    case layout
    case problem
    case stops
    case compare, month
    case signIn = "sign-in"
    case run
    case runReasons = "run-reasons"
    case runSlices = "run-slices"
    case runs
    case correction
    case campaigns, campaign, calendar
    case nextStart = "next-start"
    case templates, template
    case campaignFile = "campaign-file"
    case newFile = "new-file"
    case newCampaign = "new-campaign"
    case campaignParts = "campaign-parts"
    case campaignPhones = "campaign-phones"
    case campaignPlan = "campaign-plan"
    case campaignTroubles = "campaign-troubles"
    case sharedTemplate = "shared-template"
    case audienceChoices = "audience-choices"
    case composer
    case composerParts = "composer-parts"
    case composerFound = "composer-found"
    case composerNexts = "composer-nexts"
    case composerVariables = "composer-variables"
    case devices, device
    case segments, segment
    case segmentForm = "segment-form"
    /// The count of an expression, as a fragment of a page.
    case count
    case audit, health, setup, people, join
    case setupImport = "setup-import"
    case approvals, approval
    case plans, plan
    /// The state of a test alone, without a page.
    case testState = "test-state"
    case changes
    case guide
    /// A page of the guide as a file, for a site without a server.
    case guideSite = "guide-site"
    case report
    case reportFacts = "report-facts"
    case reportSum = "report-sum"
    case reportSlices = "report-slices"

    struct Missing: Error {
        let template: PageTemplate
    }

    /// The texts of the template files, by name.
    static let texts = Dictionary(
        uniqueKeysWithValues: allCases.map { ($0.rawValue, EmbeddedFile.text("\($0.rawValue).mustache")) })

    private static let library = Result {
        MustacheLibrary(templates: try texts.mapValues(PageContentType.template))
    }

    /// Renders the model. Throws if a template cannot be parsed.
    func render(_ model: Any) throws -> String {
        guard let text = try Self.library.get().render(TemplateModel.tree(model) as Any, withTemplate: rawValue) else {
            throw Missing(template: self)
        }
        return text
    }
}
