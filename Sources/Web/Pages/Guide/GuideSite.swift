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

    /// The files by name. `index.html` is the entry.
    package var files: [(name: String, text: String)] {
        get throws {
            try guide.pages.map { (Self.file(of: $0.name, in: guide), try text(of: $0)) } + [
                ("style.css", Asset.style.text)
            ]
        }
    }

    private var styles: [(name: String, text: String)] {
        [Asset.style, .guideStyle].map { ($0.rawValue, $0.text) }
    }

    private static func file(of name: String, in guide: Guide) -> String {
        name == guide.entry.name ? "index.html" : "\(name).html"
    }

    private func text(of page: GuidePage) throws -> String {
        let html = GuideHTML { target in
            if target.hasPrefix("http") { return target }
            let anchor = target.firstIndex(of: "#").map { String(target[$0...]) } ?? ""
            return GuidePage.name(ofFile: target).map { Self.file(of: $0, in: guide) + anchor }
        }
        return try PageTemplate.guideSite.render(
            Page(
                title: page.title, html: html.text(page.blocks),
                entries: guide.pages.map {
                    .init(address: Self.file(of: $0.name, in: guide), title: $0.title, isCurrent: $0.name == page.name)
                }))
    }
}
