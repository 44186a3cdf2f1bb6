import Guide
import Hummingbird
import Model

/// The guide as pages, with a search.
struct GuidePages: Sendable {
    struct Page: Sendable {
        struct Entry: Sendable {
            var address: String
            var title: String
            var isCurrent: Bool
        }

        struct Match: Sendable {
            var address: String
            var title: String
            var line: String
        }

        var entries: [Entry]
        /// The text that the visitor searches for. Empty if there is no search.
        var search = ""
        var matches: [Match] = []
        var findsNothing = false
        /// The text of the page as HTML. Empty while matches are shown.
        var html = ""
        var previous: Entry?
        var next: Entry?
    }

    /// Returns the guide. The first request for one of its pages builds it, not the start of the server.
    let load: @Sendable () -> Guide

    private var guide: Guide { load() }

    var routes: [PageRoute] { [.get("/guide", .read, show), .get("/guide/{name}", .read, show)] }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        let name = request.path("name")
        guard let page = name.isEmpty ? guide.entry : guide.page(named: name) else {
            throw Problem.notFound("the guide has no page \(name); its list is at /guide")
        }
        if let search = request.query("q") {
            return try request.page(.guide, title: "Guide: \(search)", matches(search))
        }
        return try request.page(.guide, title: page.title, shown(page))
    }

    private func entries(current: GuidePage?) -> [Page.Entry] {
        guide.pages.map { entry($0, isCurrent: $0.name == current?.name) }
    }

    private func entry(_ page: GuidePage, isCurrent: Bool = false) -> Page.Entry {
        Page.Entry(address: Self.address(ofPage: page.name), title: page.title, isCurrent: isCurrent)
    }

    private static func address(ofPage name: String) -> String { "/guide/\(name)" }

    private func shown(_ page: GuidePage) -> Page {
        let html = GuideHTML(address: Self.address)
        let (previous, next) = guide.neighbours(of: page)
        return Page(
            entries: entries(current: page), html: html.text(page.blocks), previous: previous.map { entry($0) },
            next: next.map { entry($0) })
    }

    private func matches(_ search: String) -> Page {
        let matches = guide.search(search).map { match in
            Page.Match(
                address: Self.address(ofPage: match.page.name) + (match.heading.map { "#\($0.anchor)" } ?? ""),
                title: match.page.title + (match.heading.map { ": \($0)" } ?? ""), line: String(match.line.prefix(300)))
        }
        return Page(
            entries: entries(current: nil), search: search, matches: matches, findsNothing: matches.isEmpty)
    }
}
