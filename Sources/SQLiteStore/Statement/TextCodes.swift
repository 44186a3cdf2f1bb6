/// Small numbers for the texts of a column, so that a million rows naming a few dozen locales make no strings: equal
/// texts have equal numbers, from 0 in order of appearance.
struct TextCodes {
    /// By number; nil where the column was NULL.
    private(set) var texts: [String?] = []
    private var codes: [UInt64: Int] = [:]
    private var null: Int?
    /// Texts whose hash was taken; as good as never.
    private var others: [String: Int] = [:]

    mutating func code(_ rows: RowStatement, _ column: Int32) -> Int {
        rows.withText(column) { bytes in
            guard let bytes else { return nullCode() }
            let hash = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
            if let code = codes[hash], texts[code]?.utf8.elementsEqual(bytes) == true { return code }
            return newCode(String(decoding: bytes, as: UTF8.self), hash)
        }
    }

    private mutating func nullCode() -> Int {
        if let null { return null }
        texts.append(nil)
        null = texts.count - 1
        return texts.count - 1
    }

    private mutating func newCode(_ text: String, _ hash: UInt64) -> Int {
        if codes[hash] != nil, let known = others[text] { return known }
        texts.append(text)
        if codes[hash] == nil { codes[hash] = texts.count - 1 } else { others[text] = texts.count - 1 }
        return texts.count - 1
    }
}
