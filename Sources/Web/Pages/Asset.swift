import HTTPTypes
import Hummingbird
import Model

/// The stylesheet and the script, which are in the binary.
enum Asset: String, CaseIterable, Sendable {
    case style = "style.css"
    case script = "studio.js"
    /// Of the pages where a text is written.
    case editor = "editor.js"

    /// Another one whenever any of them is another: addresses carry it, and may then be kept for ever.
    static let version = String(format(allCases.flatMap(\.bytes)))

    private var bytes: [UInt8] {
        switch self {
        case .style: PackageResources.style_css
        case .script: PackageResources.studio_js
        case .editor: PackageResources.editor_js
        }
    }

    private var type: String {
        switch self {
        case .style: "text/css; charset=utf-8"
        case .script, .editor: "text/javascript; charset=utf-8"
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

    /// FNV-1a, which is enough to tell one build's files from another's.
    private static func format(_ bytes: [UInt8]) -> String {
        let hash = bytes.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return String(hash, radix: 36)
    }
}
