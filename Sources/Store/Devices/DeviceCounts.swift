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

/// What pruning deleted, or would delete; every device counts once.
package struct PruneCounts: Hashable, Sendable {
    /// Gone before the given time.
    package var gone = 0
    /// Of the rest, not seen since the given time.
    package var notSeen = 0
    /// Would be among them, but a background push of the last day still counts against their silent budget: a device
    /// registered anew would start with a fresh one. Left for the next time.
    package var kept = 0

    package init() {}

    package var total: Int { gone + notSeen }
}
