import Model
import Campaigns

/// The table of texts, each with its devices and its largest payload.
struct PlanBlocksText {
    private static let languagesShown = 4
    private static let uncoveredShown = 5
    /// The number of texts above which those that no device gets share one row.
    private static let rowsMax = 12

    let plan: Plan

    func add(to page: inout Page) {
        let nameWidth = min(24, plan.blocks.map { name($0).count }.max() ?? 0) + 2
        let hasLanguages = plan.blocks.contains { $0.locale != "all" }
        page.line(
            "Text".padded(to: nameWidth + 2) + "devices".rightAligned(to: 11) + "largest payload".rightAligned(to: 22)
                + (hasLanguages ? "   languages" : ""))
        let unused = plan.blocks.count > Self.rowsMax ? plan.blocks.filter { $0.devices == 0 } : []
        for block in plan.blocks where unused.isEmpty || block.devices > 0 {
            let size = "\(block.payloadMaxBytes.grouped) of \(plan.payloadLimitBytes.grouped) bytes"
            let languages = hasLanguages && block.devices > 0 ? "   " + Self.languages(block) : ""
            page.line(
                "  " + name(block).padded(to: nameWidth) + block.devices.grouped.rightAligned(to: 11)
                    + size.rightAligned(to: 22) + languages)
        }
        if let largest = unused.max(by: { $0.payloadMaxBytes < $1.payloadMaxBytes }) {
            page.row(
                "",
                "and \(unused.count) texts that no device gets, the largest \(name(largest)) "
                    + "(\(largest.payloadMaxBytes.grouped) bytes): \(unused.map(name).joined(separator: ", "))")
        }
        addWarnings(&page)
    }

    private func name(_ block: Plan.Block) -> String {
        block.variant.map { "\($0) \(block.locale)" } ?? block.locale
    }

    private static func languages(_ block: Plan.Block) -> String {
        block.languages.map { "\($0.tag ?? "unknown") \($0.devices.grouped)" }.listed(atMost: languagesShown)
    }

    private static func excess(_ block: Plan.Block, limit: Int) -> String {
        let least = block.payloadMinBytes
        guard least > limit else {
            return "up to \(block.payloadMaxBytes.grouped) bytes with device fields of \(Planner.fieldMaxBytes) bytes; "
                + "a push over \(limit.grouped) bytes is not sent"
        }
        let size = least == block.payloadMaxBytes ? least.grouped : "at least \(least.grouped)"
        return "\(size) bytes for every device, \((least - limit).grouped) over the limit; none of the "
            + "\(block.devices.grouped) is sent; shorten the text"
    }

    private func addWarnings(_ page: inout Page) {
        for block in plan.blocks where block.payloadMaxBytes > plan.payloadLimitBytes {
            page.row("", "\(name(block)): \(Self.excess(block, limit: plan.payloadLimitBytes)) (payload_too_large)")
        }
        let uncovered = plan.uncovered
        guard let text = uncovered.first?.text else { return }
        let list = uncovered.map { "\($0.language) (\($0.devices.grouped))" }.listed(atMost: Self.uncoveredShown)
        page.row("", "no text for \(list): these devices get \(text)")
    }
}

/// The changes since the last run, in a few lines.
struct DifferenceText {
    private static let changesShown = 12

    let difference: RunDifference

    func add(to page: inout Page) {
        let run = difference.run
        let when = run.finishedAt.map { ", finished \($0.shown)" } ?? ""
        page.line("Since run \(run.id)\(when)")
        page.row("  reach", reach)
        page.row("  texts", texts)
        page.row("  variables", difference.variables.joined(separator: ", "))
        page.row("  campaign", difference.keys.joined(separator: ", "))
        if difference.texts.isEmpty, difference.variables.isEmpty, difference.keys.isEmpty {
            page.row("  files", "nothing has changed")
        }
    }

    private var reach: String {
        let (before, now) = (difference.reachBefore, difference.reachNow)
        guard before != now else { return "\(now.devices), as then" }
        return "\(now.devices), \(Percent.growth(from: before, to: now)) than the \(before.grouped) then"
    }

    /// The changed texts: `de: title, body; fr: new; sound`.
    private var texts: String {
        var groups: [(name: String, keys: [String])] = []
        for change in difference.texts {
            let name = [change.variant.map { "variant \($0)" }, change.locale].compactMap(\.self).joined(separator: " ")
            let key =
                change.key.map { change.kind == .changed ? $0 : "\($0) \(Self.word(change.kind))" }
                ?? Self.word(change.kind)
            if let last = groups.indices.last, groups[last].name == name {
                groups[last].keys.append(key)
            } else {
                groups.append((name, [key]))
            }
        }
        let entries = groups.map { ($0.name.isEmpty ? "" : "\($0.name): ") + $0.keys.joined(separator: ", ") }
        guard entries.count > Self.changesShown else { return entries.joined(separator: "; ") }
        return entries.prefix(Self.changesShown).joined(separator: "; ")
            + " and \(entries.count - Self.changesShown) more"
    }

    private static func word(_ kind: RunDifference.Change.Kind) -> String {
        switch kind {
        case .added: "new"
        case .removed: "gone"
        case .changed: "changed"
        }
    }
}
