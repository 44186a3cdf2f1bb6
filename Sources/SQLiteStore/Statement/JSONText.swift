import Foundation

/// The two shapes of JSON in the store beside run definitions: attributes of a device, and lists given to `json_each`.
enum JSONText {
    /// Keys are sorted, so that equal attributes are equal texts.
    static func object(_ attributes: [String: String]) -> String {
        var json = "{"
        for (index, pair) in attributes.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { json += "," }
            append(pair.key, to: &json)
            json += ":"
            append(pair.value, to: &json)
        }
        return json + "}"
    }

    static func array(_ texts: [String]) -> String {
        var json = "["
        for (index, text) in texts.enumerated() {
            if index > 0 { json += "," }
            append(text, to: &json)
        }
        return json + "]"
    }

    static func attributes(_ json: String) throws -> [String: String] {
        try JSONDecoder().decode([String: String].self, from: Data(json.utf8))
    }

    private static func append(_ text: String, to json: inout String) {
        json += "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": json += "\\\""
            case "\\": json += "\\\\"
            case "\u{0}"..."\u{1F}":
                let digits = String(scalar.value, radix: 16)
                json += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: json.unicodeScalars.append(scalar)
            }
        }
        json += "\""
    }
}
