import Foundation
import HTTPTypes
import Hummingbird
import Model
import Mustache

/// The templates of the pages, by the names of their files.
enum PageTemplate: String, CaseIterable, Sendable {
    case deliveries
    case layout
    case problem
    case signIn = "sign-in"
    case run
    case runs
    case campaigns, campaign, calendar
    case campaignParts = "campaign-parts"
    case campaignPhones = "campaign-phones"
    case campaignPlan = "campaign-plan"
    case campaignTroubles = "campaign-troubles"
    case devices, device
    case segments, segment
    case segmentForm = "segment-form"
    /// How many an expression selects, by itself.
    case count
    case audit, health, tokens

    fileprivate var bytes: [UInt8] {
        switch self {
        case .deliveries: PackageResources.deliveries_mustache
        case .layout: PackageResources.layout_mustache
        case .problem: PackageResources.problem_mustache
        case .signIn: PackageResources.sign_in_mustache
        case .run: PackageResources.run_mustache
        case .runs: PackageResources.runs_mustache
        case .campaigns: PackageResources.campaigns_mustache
        case .campaign: PackageResources.campaign_mustache
        case .calendar: PackageResources.calendar_mustache
        case .campaignParts: PackageResources.campaign_parts_mustache
        case .campaignPhones: PackageResources.campaign_phones_mustache
        case .campaignPlan: PackageResources.campaign_plan_mustache
        case .campaignTroubles: PackageResources.campaign_troubles_mustache
        case .devices: PackageResources.devices_mustache
        case .device: PackageResources.device_mustache
        case .segments: PackageResources.segments_mustache
        case .segment: PackageResources.segment_mustache
        case .segmentForm: PackageResources.segment_form_mustache
        case .count: PackageResources.count_mustache
        case .audit: PackageResources.audit_mustache
        case .health: PackageResources.health_mustache
        case .tokens: PackageResources.tokens_mustache
        }
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// Makes whole pages of templates: the frame around them, who is signed in, and what browsers must know of them.
struct PageRenderer: Sendable {
    /// What every page's template sees.
    struct Page<Content: Sendable>: Sendable {
        struct Link: Sendable {
            var address: String
            var label: String
            var isCurrent: Bool
        }

        struct Visitor: Sendable {
            var name: String
            var role: String
        }

        var title: String
        var links: [Link]
        /// Nil: nobody is signed in.
        var visitor: Visitor?
        /// Of the script and the stylesheet: a new one is asked for anew.
        var version: String
        var content: Content
    }

    /// The pages of the head line, in order of use, and what is needed to see them.
    private static let pages: [(address: String, label: String, permission: AccessRole.Permission)] = [
        ("/", "Runs", .read), ("/campaigns", "Campaigns", .read), ("/calendar", "Calendar", .read),
        ("/segments", "Segments", .read), ("/devices", "Devices", .read), ("/audit", "Audit", .read),
        ("/health", "Health", .read), ("/tokens", "Tokens", .tokens),
    ]

    private static let headers: HTTPFields = [
        .contentType: "text/html; charset=utf-8",
        .cacheControl: "no-store",
        .contentSecurityPolicy: "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
            + "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        .xContentTypeOptions: "nosniff",
    ]

    private let library: MustacheLibrary

    init() throws {
        let texts = Dictionary(uniqueKeysWithValues: PageTemplate.allCases.map { ($0.rawValue, $0.text) })
            .merging(Assets.templateTexts) { own, _ in own }
        library = MustacheLibrary(templates: try texts.mapValues { try MustacheTemplate(string: $0) })
    }

    func response(
        _ template: PageTemplate, title: String, _ content: some Sendable, visitor: Caller?, path: String,
        status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) throws -> Response {
        let page = Page(
            title: title, links: visitor.map { Self.links(for: $0, at: path) } ?? [],
            visitor: visitor.map { .init(name: $0.name, role: $0.role.rawValue) }, version: Asset.version,
            content: content)
        let text = try text(template, page)
        var fields = Self.headers
        for field in headers { fields.append(field) }
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
            .with("Referrer-Policy", "same-origin")
    }

    /// A template alone, for parts that are sent by themselves.
    func text(_ template: PageTemplate, _ model: Any) throws -> String {
        guard let text = library.render(model, withTemplate: template.rawValue) else {
            throw HTTPError(.internalServerError, message: "no template \(template.rawValue)")
        }
        return text
    }

    private static func links<Content>(for visitor: Caller, at path: String) -> [Page<Content>.Link] {
        pages.filter { visitor.role.may($0.permission) }.map { page in
            let isCurrent =
                page.address == "/" ? path == "/" || path.hasPrefix("/runs") : path.hasPrefix(page.address)
            return Page<Content>.Link(address: page.address, label: page.label, isCurrent: isCurrent)
        }
    }
}
