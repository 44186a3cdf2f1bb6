import Model

/// What a topic may look like in a file: an app's bundle id.
enum Topic {
    static func isWellFormed(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count > 1 && text.utf8.count <= 255
            && parts.allSatisfy { part in
                !part.isEmpty && part.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") }
            }
    }

    /// The suffix of a push type at the end, which is Fanfare's to add (`apns-protocol.md` section 4).
    static func suffix(of text: String) -> String? {
        PushType.allCases.map(\.topicSuffix).first { !$0.isEmpty && text.hasSuffix($0) }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
