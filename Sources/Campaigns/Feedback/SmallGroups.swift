import Model

/// Shares of groups of devices, without groups so small that they could tell what a person did.
enum SmallGroups {
    /// Groups with fewer devices are merged.
    static let devicesMin = 20
    /// The name of the merged groups.
    static let other = "other"

    /// Returns the groups of which the share may be shown, and those of which only the size is. Groups without devices
    /// are left out. It is for groups that the campaign chose, such as variants, so groups are not merged.
    ///
    /// The share of all groups is known. If the small ones together have too few devices, their share would follow from
    /// it by subtraction, so the smallest of the others is hidden, too. A single one that is left has nothing to
    /// be compared with, so it is hidden as well.
    static func split(
        _ groups: [(name: String, share: Proportion)]
    ) -> (shown: [(name: String, share: Proportion)], hidden: [(name: String, share: Proportion)]) {
        var shown = groups.filter { $0.share.total >= devicesMin }
        let small = groups.filter { 1..<devicesMin ~= $0.share.total }
        if !small.isEmpty, small.reduce(0, { $0 + $1.share.total }) < devicesMin,
            let least = shown.indices.min(by: { shown[$0].share.total < shown[$1].share.total })
        {
            shown.remove(at: least)
            if shown.count < 2 { shown = [] }
        }
        let names = Set(shown.map(\.name))
        return (shown, groups.filter { $0.share.total > 0 && !names.contains($0.name) })
    }

    /// Returns the groups in order, with the small ones merged into a last one. If the last one would be small, too, it
    /// also takes the smallest of the others. Groups without devices are left out.
    static func merged(_ groups: [(name: String, share: Proportion)]) -> [(name: String, share: Proportion)] {
        var kept = groups.filter { $0.share.total >= devicesMin }
        let small = groups.filter { 1..<devicesMin ~= $0.share.total }
        guard !small.isEmpty else { return kept }
        var rest = small.reduce(Proportion(0, of: 0)) { $0 + $1.share }
        if rest.total < devicesMin, let least = kept.indices.min(by: { kept[$0].share.total < kept[$1].share.total }) {
            rest = rest + kept.remove(at: least).share
        }
        return kept + [(other, rest)]
    }
}

extension Proportion {
    fileprivate static func + (first: Proportion, second: Proportion) -> Proportion {
        Proportion(first.count + second.count, of: first.total + second.total)
    }
}
