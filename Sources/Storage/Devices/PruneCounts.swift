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
