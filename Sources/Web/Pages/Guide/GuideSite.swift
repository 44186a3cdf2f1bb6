package import Guide

/// The guide as a static site: one file for each page, and the stylesheets.
package struct GuideSite {
    private struct Page: Sendable {
        var title: String
        var html: String
        var entries: [GuidePages.Page.Entry]
    }

    private let guide: Guide

    package init(_ guide: Guide) {
        self.guide = guide
    }

    /// The files by name. The entry page is `index.html`.
    package var files: [(name: String, text: String)] {
        get throws {
            try guide.pages.map { (file(ofPage: $0.name), try text(of: $0)) }
                + [Asset.style, .guideStyle].map { ($0.rawValue, $0.text) }
        }
    }

    private func file(ofPage name: String) -> String { name == guide.entry.name ? "index.html" : "\(name).html" }

    private func text(of page: GuidePage) throws -> String {
        let html = GuideHTML(address: file)
        return try PageTemplate.guideSite.render(
            Page(
                title: page.title, html: html.text(page.blocks),
                entries: guide.pages.map {
                    .init(address: file(ofPage: $0.name), title: $0.title, isCurrent: $0.name == page.name)
                }))
    }
}
