/// What an import did with its records; every record is counted once.
package struct ImportCounts: Hashable, Sendable {
    package var inserted = 0
    /// Known devices with something changed, their token kept.
    package var updated = 0
    /// Known installations with a new token.
    package var tokensReplaced = 0
    /// Known installations reporting the token of another stored device, which became one with it.
    package var merged = 0
    /// Known devices with nothing new.
    package var unchanged = 0

    package init() {}

    package var sum: Int { inserted + updated + tokensReplaced + merged + unchanged }

    package static func + (left: ImportCounts, right: ImportCounts) -> ImportCounts {
        var sum = left
        sum.inserted += right.inserted
        sum.updated += right.updated
        sum.tokensReplaced += right.tokensReplaced
        sum.merged += right.merged
        sum.unchanged += right.unchanged
        return sum
    }
}
