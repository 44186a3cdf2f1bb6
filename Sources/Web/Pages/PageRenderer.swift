import Foundation
import HTTPTypes
import Hummingbird
import Model

/// Renders whole pages from templates: the content, the navigation, the visitor's name, and the headers of the
/// response.
enum PageRenderer {
    /// The values that every page's template uses.
    struct Page<Content: Sendable>: Sendable {
        struct Visitor: Sendable {
            var name: String
            var role: String
        }

        var title: String
        /// `nil` if no person is signed in.
        var menu: PageMenu?
        /// `nil` if no person is signed in.
        var visitor: Visitor?
        /// The stops in force.
        var stops: [StopBanner] = []
        /// Whether the visitor may stop everything, and no such stop is in force.
        var mayStopAll = false
        /// The name of the zone of the times.
        var zone = "UTC"
        /// The version of the scripts and the stylesheets. Browsers load them again when it changes.
        var version: String
        var content: Content
    }

    private static let headers: HTTPFields = [
        .contentType: "text/html; charset=utf-8",
        .cacheControl: "no-store",
        .contentSecurityPolicy: "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
            + "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        .xContentTypeOptions: "nosniff",
    ]

    static func response(
        _ template: PageTemplate, title: String, _ content: some Sendable, in frame: PageFrame, path: String,
        status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) throws -> Response {
        let visitor = frame.visitor
        let page = Page(
            title: title, menu: visitor.map { PageMenu(for: $0.role, at: path, waiting: frame.waiting) },
            visitor: visitor.map { .init(name: $0.name, role: $0.role.rawValue) }, stops: frame.stops,
            mayStopAll: visitor.map { $0.role.may(.halt) && $0.topic == nil } == true
                && !frame.stops.contains { $0.scope == StopOrder.Scope.all.text },
            zone: ViewerZone.name(of: frame.zone), version: Asset.version, content: content)
        let text = try template.render(page)
        var fields = Self.headers
        for field in headers { fields.append(field) }
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
            .with("Referrer-Policy", "same-origin")
    }
}
