import Model

/// The occurrence key of a feed's item, made of its guid: readable, bounded, and the same for the same guid for ever.
enum FeedItemKey {
    private static let wordBytesMax = 40

    /// `item-` and the guid's end as far as it is letters and digits, with the hash of the whole guid: two guids never
    /// share a key by what was left out.
    static func key(guid: String) -> String {
        let hash = String(FNV1a.hash(guid), radix: 16)
        let word = guid.lowercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }.joined(separator: "-")
        let end = word.suffix(wordBytesMax).drop { $0 == "-" }
        return ["item", end + "", String(repeating: "0", count: 16 - hash.count) + hash].filter { !$0.isEmpty }
            .joined(separator: "-")
    }
}
