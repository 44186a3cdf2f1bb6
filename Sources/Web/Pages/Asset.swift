import HTTPTypes
import Hummingbird
import Model

/// The stylesheets and the scripts, which are embedded in the binary.
enum Asset: String, CaseIterable, Sendable {
    case style = "style.css"
    /// The additional stylesheet of the guide. All pages and the report use ``style``.
    case guideStyle = "guide.css"
    /// The additional stylesheet of the composer and of the gallery.
    case composerStyle = "composer.css"
    case script = "console.js"
    /// The script of the pages with a text editor.
    case editor = "editor.js"
    /// The script of the composer.
    case composer = "composer.js"
    /// The script of the pages with an expression editor.
    case segments = "segments.js"
    /// The icon of the browser's tab.
    case icon = "icon.svg"

    /// The version of all assets, which changes with any of them. Addresses contain it, so browsers may cache an asset
    /// for a year.
    static let version = EntityTag.word(allCases.flatMap(\.bytes))

    private var bytes: [UInt8] {
        switch self {
        case .style: PackageResources.style_css
        case .guideStyle: PackageResources.guide_css
        case .composerStyle: PackageResources.composer_css
        case .script: PackageResources.console_js
        case .editor: PackageResources.editor_js
        case .composer: PackageResources.composer_js
        case .segments: PackageResources.segments_js
        case .icon: PackageResources.icon_svg
        }
    }

    private var type: String {
        switch self {
        case .style, .guideStyle, .composerStyle: "text/css; charset=utf-8"
        case .script, .editor, .composer, .segments: "text/javascript; charset=utf-8"
        case .icon: "image/svg+xml"
        }
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    static var routes: [PageRoute] {
        allCases.map { asset in
            .get("/assets/\(asset.rawValue)", nil) { request in
                let isNamed = request.query("v") == version
                return Response(
                    status: .ok,
                    headers: [
                        .contentType: asset.type, .xContentTypeOptions: "nosniff",
                        .cacheControl: isNamed ? "public, max-age=31536000, immutable" : "no-cache",
                    ],
                    body: ResponseBody(byteBuffer: ByteBuffer(bytes: asset.bytes)))
            }
        }
    }
}
