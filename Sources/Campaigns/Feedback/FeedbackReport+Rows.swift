import Foundation
import Model
import Store

extension FeedbackReport {
    /// The maximum number of languages in words. The others are in the JSON form.
    private static let localesShown = 8

    /// The report in words, one row for each figure, for a terminal, a page and a file.
    package var rows: [(name: String, text: String)] {
        var rows = [(name: "Opened", text: Self.text(opened))]
        if let openedNotAccepted {
            rows.append(
                (
                    "Also opened",
                    "\(openedNotAccepted.counted("push", "pushes")) that APNs did not confirm; in no share of the accepted"
                ))
        }
        if let delay {
            let (half, most) = (Self.minutes(delay.half), Self.minutes(delay.most))
            rows.append(("How soon", "half of the opens within \(half), nine of ten within \(most)"))
        }
        if dismissed.devices > 0 { rows.append(("Dismissed", Self.text(dismissed))) }
        for action in actions { rows.append(("Button \(action.name)", Self.text(action.share))) }
        if let arrivals {
            rows.append(
                (
                    "Arrived",
                    "\(arrivals.reported.grouped) reports from about \(arrivals.asked.grouped) devices that were asked "
                        + "(\(arrivals.askedPercent)%)"
                ))
        }
        for variant in variants { rows.append(("Variant \(variant.name)", Self.withInterval(variant.share))) }
        for variant in smallVariants ?? [] {
            let size = variant.accepted.counted("accepted push", "accepted pushes")
            let reason =
                variant.accepted < SmallGroups.devicesMin
                ? "for fewer than \(SmallGroups.devicesMin)" : "because they would reveal those of a smaller variant"
            rows.append(("Variant \(variant.name)", "\(size); opens are not shown \(reason)"))
        }
        if let variantsSummary { rows.append(("Variants", variantsSummary)) }
        rows += languages
        if let conversion { rows.append(("Goal", conversion.summary)) }
        if let bestHour { rows.append(("Best hour", bestHour.summary)) }
        if let alertsOff { rows.append(("Alerts off", alertsOff.summary)) }
        return rows
    }

    private var languages: [(name: String, text: String)] {
        guard opened.devices > 0 else { return [] }
        return (locales ?? []).prefix(Self.localesShown).map { locale in
            let isMerged = locale.name == SmallGroups.other
            let note = isMerged ? "; languages with fewer than \(SmallGroups.devicesMin) devices, together" : ""
            return ("Language \(locale.name)", Self.withInterval(locale.share) + note)
        }
    }

    private static func withInterval(_ share: Share) -> String {
        guard share.of > 0 else { return text(share) }
        return text(share) + String(format: ", 95 %% interval %.2f to %.2f", share.low, share.high)
    }

    private static func text(_ share: Share) -> String {
        guard let percent = share.percent else { return "no push was accepted" }
        return String(format: "%.2f%% (%@ of %@ accepted)", percent, share.devices.grouped, share.of.grouped)
    }

    private static func minutes(_ minutes: Int) -> String { WrittenDuration.text(.seconds(60 * minutes)) }
}
