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
    static let version = EntityTag.word(allCases.flatMap(\.text.utf8))

    private var type: String {
        switch self {
        case .style, .guideStyle, .composerStyle: "text/css; charset=utf-8"
        case .script, .editor, .composer, .segments: "text/javascript; charset=utf-8"
        case .icon: "image/svg+xml"
        }
    }

    var text: String { EmbeddedFile.text(rawValue) }

    static var routes: [PageRoute] {
        allCases.map { asset in
            // One buffer for all responses, which share its bytes.
            let text = ByteBuffer(string: asset.text)
            return .get("/assets/\(asset.rawValue)", nil) { request in
                let isNamed = request.query("v") == version
                return Response(
                    status: .ok,
                    headers: [
                        .contentType: asset.type, .xContentTypeOptions: "nosniff",
                        .cacheControl: isNamed ? "public, max-age=31536000, immutable" : "no-cache",
                    ],
                    body: ResponseBody(byteBuffer: text))
            }
        }
    }
}
