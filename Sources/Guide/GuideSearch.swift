extension Guide {
    /// A section in which all terms of a search occur.
    package struct Match: Hashable, Sendable {
        package let page: GuidePage
        /// The heading of the section, or `nil` for the part above the first one.
        package let heading: String?
        /// The first line with one of the terms.
        package let line: String
    }

    /// The maximum numbers of words searched for, of characters in the text, and of matches returned.
    private static let (termsMax, charactersMax, matchesMax) = (8, 200, 30)

    /// Returns the sections that contain every word of the text, in any case. Sections with more of the words in their
    /// headings come first.
    package func search(_ text: String) -> [Match] {
        let terms = text.prefix(Self.charactersMax).lowercased().split(whereSeparator: \.isWhitespace).prefix(
            Self.termsMax)
        guard !terms.isEmpty else { return [] }
        let phrase = terms.joined(separator: " ")
        var found: [(match: Match, rank: Int)] = []
        for page in pages {
            for section in GuideSection.sections(of: page) {
                let heading = "\(page.title) \(section.heading ?? "")".lowercased()
                let lines = section.lines.map { $0.lowercased() }
                guard terms.allSatisfy({ word in heading.contains(word) || lines.contains { $0.contains(word) } })
                else { continue }
                let index =
                    lines.firstIndex { $0.contains(phrase) }
                    ?? lines.firstIndex { line in terms.contains { line.contains($0) } } ?? 0
                let line = index < section.lines.count ? section.lines[index] : ""
                // The whole phrase counts most, and counts more in a heading.
                let hasPhrase = lines.contains { $0.contains(phrase) }
                let rank =
                    terms.count { heading.contains($0) } + (heading.contains(phrase) ? 20 : 0) + (hasPhrase ? 10 : 0)
                found.append((Match(page: page, heading: section.heading, line: line), rank))
            }
        }
        let ranked = found.enumerated().sorted { ($1.element.rank, $0.offset) < ($0.element.rank, $1.offset) }
        return ranked.prefix(Self.matchesMax).map(\.element.match)
    }
}
