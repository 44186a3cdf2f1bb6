import Mustache

/// What is shown to browsers and comes with the program: the stylesheet and the templates.
package enum Assets {
    package static let stylesheet = String(decoding: PackageResources.style_css, as: UTF8.self)

    /// By the names of their files: `{{>report-sum}}` is `Templates/report-sum.mustache`.
    package static let templateTexts: [String: String] = [
        "report": text(PackageResources.report_mustache),
        "report-facts": text(PackageResources.report_facts_mustache),
        "report-sum": text(PackageResources.report_sum_mustache),
        "report-slices": text(PackageResources.report_slices_mustache),
    ]

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    /// Renders a template of ours; throws where its text is wrong, or where there is none of that name.
    package static func render(_ model: Any, _ name: String) throws -> String {
        guard let text = try library.get().render(model, withTemplate: name) else { throw MissingTemplate(name: name) }
        return text
    }

    private static let library = Result {
        MustacheLibrary(templates: try templateTexts.mapValues { try MustacheTemplate(string: $0) })
    }

    struct MissingTemplate: Error {
        let name: String
    }
}
