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

    private var bytes: [UInt8] {
        switch self {
        case .deliveries: PackageResources.deliveries_mustache
        case .layout: PackageResources.layout_mustache
        case .problem: PackageResources.problem_mustache
        case .stops: PackageResources.stops_mustache
        case .compare: PackageResources.compare_mustache
        case .month: PackageResources.month_mustache
        case .signIn: PackageResources.sign_in_mustache
        case .run: PackageResources.run_mustache
        case .runReasons: PackageResources.run_reasons_mustache
        case .runSlices: PackageResources.run_slices_mustache
        case .runs: PackageResources.runs_mustache
        case .correction: PackageResources.correction_mustache
        case .nextStart: PackageResources.next_start_mustache
        case .campaigns: PackageResources.campaigns_mustache
        case .campaign: PackageResources.campaign_mustache
        case .templates: PackageResources.templates_mustache
        case .template: PackageResources.template_mustache
        case .calendar: PackageResources.calendar_mustache
        case .campaignFile: PackageResources.campaign_file_mustache
        case .newFile: PackageResources.new_file_mustache
        case .newCampaign: PackageResources.new_campaign_mustache
        case .campaignParts: PackageResources.campaign_parts_mustache
        case .campaignPhones: PackageResources.campaign_phones_mustache
        case .campaignPlan: PackageResources.campaign_plan_mustache
        case .campaignTroubles: PackageResources.campaign_troubles_mustache
        case .audienceChoices: PackageResources.audience_choices_mustache
        case .composer: PackageResources.composer_mustache
        case .composerParts: PackageResources.composer_parts_mustache
        case .composerFound: PackageResources.composer_found_mustache
        case .composerNexts: PackageResources.composer_nexts_mustache
        case .composerVariables: PackageResources.composer_variables_mustache
        case .devices: PackageResources.devices_mustache
        case .device: PackageResources.device_mustache
        case .segments: PackageResources.segments_mustache
        case .segment: PackageResources.segment_mustache
        case .segmentForm: PackageResources.segment_form_mustache
        case .count: PackageResources.count_mustache
        case .audit: PackageResources.audit_mustache
        case .health: PackageResources.health_mustache
        case .people: PackageResources.people_mustache
        case .join: PackageResources.join_mustache
        case .setupImport: PackageResources.setup_import_mustache
        case .setup: PackageResources.setup_mustache
        case .approvals: PackageResources.approvals_mustache
        case .plans: PackageResources.plans_mustache
        case .plan: PackageResources.plan_mustache
        case .testState: PackageResources.test_state_mustache
        case .changes: PackageResources.changes_mustache
        case .approval: PackageResources.approval_mustache
        case .guide: PackageResources.guide_mustache
        case .guideSite: PackageResources.guide_site_mustache
        case .report: PackageResources.report_mustache
        case .reportFacts: PackageResources.report_facts_mustache
        case .reportSum: PackageResources.report_sum_mustache
        case .reportSlices: PackageResources.report_slices_mustache
        }
    }

    /// The texts of the template files, by name.
    static let texts = Dictionary(
        uniqueKeysWithValues: allCases.map { ($0.rawValue, String(decoding: $0.bytes, as: UTF8.self)) })

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
