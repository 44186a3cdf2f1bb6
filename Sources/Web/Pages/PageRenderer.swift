import Foundation
import HTTPTypes
import Hummingbird
import Model

/// Renders whole pages from templates: the content, the navigation, the visitor's name, and the headers of the
/// response.
enum PageRenderer {
    /// The values that every page's template uses.
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
        /// `nil` if no person is signed in.
        var visitor: Visitor?
        /// The stops in force.
        var stops: [StopBanner] = []
        /// Whether the visitor may stop everything, and no such stop is in force.
        var mayStopAll = false
        /// The version of the scripts and the stylesheets. Browsers load them again when it changes.
        var version: String
        var content: Content
    }

    /// The pages in the navigation, most used first, with the permission that each needs.
    private static let pages: [(address: String, label: String, permission: AccessRole.Permission)] = [
        ("/", "Runs", .read), ("/campaigns", "Campaigns", .read), ("/calendar", "Calendar", .read),
        ("/approvals", "Approvals", .read), ("/segments", "Segments", .read), ("/devices", "Devices", .read),
        ("/audit", "Audit", .read), ("/health", "Health", .read), ("/tokens", "Tokens", .tokens),
        ("/guide", "Guide", .read),
    ]

    /// The pages that belong to a page of the head line, by the beginnings of their addresses.
    private static let below = ["/": ["/runs"], "/campaigns": ["/plans", "/templates", "/new"]]

    private static let headers: HTTPFields = [
        .contentType: "text/html; charset=utf-8",
        .cacheControl: "no-store",
        .contentSecurityPolicy: "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
            + "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        .xContentTypeOptions: "nosniff",
    ]

    static func response(
        _ template: PageTemplate, title: String, _ content: some Sendable, visitor: Caller?, stops: [StopBanner] = [],
        path: String,
        status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) throws -> Response {
        let page = Page(
            title: title, links: visitor.map { Self.links(for: $0, at: path) } ?? [],
            visitor: visitor.map { .init(name: $0.name, role: $0.role.rawValue) }, stops: stops,
            mayStopAll: visitor.map { $0.role.may(.halt) && $0.topic == nil } == true
                && !stops.contains { $0.scope == StopOrder.Scope.all.text },
            version: Asset.version,
            content: content)
        let text = try template.render(page)
        var fields = Self.headers
        for field in headers { fields.append(field) }
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
            .with("Referrer-Policy", "same-origin")
    }

    private static func links<Content>(for visitor: Caller, at path: String) -> [Page<Content>.Link] {
        pages.filter { visitor.role.may($0.permission) }.map { page in
            let parts = below[page.address, default: []] + (page.address == "/" ? [] : [page.address])
            let isCurrent = path == page.address || parts.contains { path.hasPrefix($0) }
            return Page<Content>.Link(address: page.address, label: page.label, isCurrent: isCurrent)
        }
    }
}
