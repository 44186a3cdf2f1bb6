import HTTPTypes
import Hummingbird
import Model

/// The stylesheet and the script, which are in the binary.
enum Asset: String, CaseIterable, Sendable {
    case style = "style.css"
    case script = "studio.js"
    /// Of the pages where a text is written.
    case editor = "editor.js"
    /// Of the pages where somebody writes an expression.
    case segments = "segments.js"

    /// Another one whenever any of them is another: addresses carry it, and may then be kept for ever.
    static let version = EntityTag.word(allCases.flatMap(\.bytes))

    private var bytes: [UInt8] {
        switch self {
        case .style: PackageResources.style_css
        case .script: PackageResources.studio_js
        case .editor: PackageResources.editor_js
        case .segments: PackageResources.segments_js
        }
    }

    private var type: String {
        switch self {
        case .style: "text/css; charset=utf-8"
        case .script, .editor, .segments: "text/javascript; charset=utf-8"
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
