/// One line of CSV (RFC 4180): a value is quoted only where it must be.
enum CSVLine {
    static func text(_ values: [String]) -> String {
        values.map { value in
            let mustQuote = value.contains { $0 == "," || $0 == "\"" || $0.isNewline }
            return mustQuote ? "\"\(value.replacing("\"", with: "\"\""))\"" : value
        }.joined(separator: ",")
    }
}
