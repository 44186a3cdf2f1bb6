import Model

/// Lines for a terminal, with a label on the left and wrapped text on the right.
struct Page {
    static let width = 100
    private static let labelWidth = 12

    private(set) var lines: [String] = []

    var text: String { lines.joined(separator: "\n") }

    /// Adds an empty line, but never two in a row.
    mutating func gap() {
        if let last = lines.last, !last.isEmpty { lines.append("") }
    }

    mutating func line(_ text: String) {
        lines.append(text)
    }

    /// Adds words wrapped beside the label. Each of `texts` starts on a new line.
    mutating func row(_ label: String, _ texts: String...) {
        row(label, texts)
    }

    mutating func row(_ label: String, _ texts: [String]) {
        var label = label
        for text in texts where !text.isEmpty {
            for line in Self.wrapped(text, width: Self.width - Self.labelWidth) {
                lines.append(label.padded(to: Self.labelWidth) + line)
                label = ""
            }
        }
    }

    /// Returns the text as lines, broken only between words. A word that is too long gets its own line.
    ///
    /// - Parameter length: the number of columns that a piece of text takes.
    static func wrapped(_ text: String, width: Int, length: (String) -> Int = \.count) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(whereSeparator: \.isWhitespace) {
            if !line.isEmpty, length(line) + 1 + length(String(word)) > width {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return lines + [line]
    }
}

extension String {
    func padded(to width: Int) -> String {
        count >= width ? self : self + String(repeating: " ", count: width - count)
    }

    func rightAligned(to width: Int) -> String {
        count >= width ? self : String(repeating: " ", count: width - count) + self
    }
}
