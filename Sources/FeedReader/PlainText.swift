import Foundation

/// Texts as people read them, of texts that may be HTML inside XML, as most feeds have it.
enum PlainText {
    private static let entities = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": " ", "hellip": "…", "ndash": "–",
        "mdash": "—", "lsquo": "‘", "rsquo": "’", "ldquo": "“", "rdquo": "”", "laquo": "«", "raquo": "»", "copy": "©",
    ]

    /// Without tags, with entities resolved, blanks and line ends as one blank.
    static func of(_ text: String) -> String {
        let untagged = text.replacing(/<\/?[A-Za-z][^<>]*>|<!--.*?-->/, with: " ")
        let resolved = untagged.replacing(/&(#[xX]?[0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});/) { match in
            character(String(match.output.1)) ?? String(match.output.0)
        }
        return bounded(resolved)
    }

    /// Blanks and line ends as one blank, control characters left out, cut at ``FeedDocument/textBytesMax``.
    static func bounded(_ text: String) -> String {
        let words = text.split { $0.isWhitespace }.joined(separator: " ")
        var clean = words.filter { !$0.unicodeScalars.contains { $0.properties.generalCategory == .control } }
        guard clean.utf8.count > FeedDocument.textBytesMax else { return clean }
        var bytes = 0
        let kept = clean.prefix {
            bytes += $0.utf8.count
            return bytes <= FeedDocument.textBytesMax
        }
        clean = String(kept)
        return clean
    }

    private static func character(_ name: String) -> String? {
        guard name.hasPrefix("#") else { return entities[name] }
        let digits = name.dropFirst()
        let isHex = digits.first == "x" || digits.first == "X"
        let code = isHex ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return code.flatMap(Unicode.Scalar.init).map { String(Character($0)) }
    }
}

enum WebLink {
    /// An absolute address; empty for anything that is not of the web.
    static func absolute(_ text: String, base: URL?) -> String {
        let text = PlainText.bounded(text)
        guard !text.isEmpty, let url = URL(string: text, relativeTo: base)?.absoluteURL,
            ["http", "https"].contains(url.scheme?.lowercased() ?? "")
        else { return "" }
        return text.contains("://") ? text : url.absoluteString
    }
}
