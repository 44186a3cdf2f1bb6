/// The guide: the pages that are embedded in the program, and a reference that the program generates from itself.
package struct Guide: Sendable {
    /// All pages in reading order. The first one lists the others.
    package let pages: [GuidePage]

    /// - Parameter reference: the generated pages, which follow the written ones.
    package init(reference: [GuidePage]) {
        pages = WrittenPage.allCases.map(\.page) + reference
    }

    package var entry: GuidePage { pages[0] }

    package func page(named name: String) -> GuidePage? { pages.first { $0.name == name } }

    /// Returns the pages before and after a page in reading order.
    package func neighbours(of page: GuidePage) -> (previous: GuidePage?, next: GuidePage?) {
        guard let index = pages.firstIndex(where: { $0.name == page.name }) else { return (nil, nil) }
        return (index > 0 ? pages[index - 1] : nil, index + 1 < pages.count ? pages[index + 1] : nil)
    }
}

/// The written pages in reading order.
enum WrittenPage: CaseIterable {
    case guide, firstBroadcast, writeACampaign, beforeYouSend, whileItRuns, afterwards, feedback, silentPushes
    case segmentsAndImports, feedsAndTimers, operate, runbook, severalMachines, api, dataForAnalysts, fiveQuestions
    case howItWorks, changelog

    var page: GuidePage { GuidePage(name: file.name, text: String(decoding: file.bytes, as: UTF8.self)) }

    private var file: (name: String, bytes: [UInt8]) {
        switch self {
        case .guide: ("Guide.md", PackageResources.Guide_md)
        case .firstBroadcast: ("FirstBroadcast.md", PackageResources.FirstBroadcast_md)
        case .writeACampaign: ("WriteACampaign.md", PackageResources.WriteACampaign_md)
        case .beforeYouSend: ("BeforeYouSend.md", PackageResources.BeforeYouSend_md)
        case .whileItRuns: ("WhileItRuns.md", PackageResources.WhileItRuns_md)
        case .afterwards: ("Afterwards.md", PackageResources.Afterwards_md)
        case .feedback: ("Feedback.md", PackageResources.Feedback_md)
        case .silentPushes: ("SilentPushes.md", PackageResources.SilentPushes_md)
        case .segmentsAndImports: ("SegmentsAndImports.md", PackageResources.SegmentsAndImports_md)
        case .feedsAndTimers: ("FeedsAndTimers.md", PackageResources.FeedsAndTimers_md)
        case .operate: ("Operate.md", PackageResources.Operate_md)
        case .runbook: ("Runbook.md", PackageResources.Runbook_md)
        case .severalMachines: ("SeveralMachines.md", PackageResources.SeveralMachines_md)
        case .api: ("API.md", PackageResources.API_md)
        case .dataForAnalysts: ("DataForAnalysts.md", PackageResources.DataForAnalysts_md)
        case .fiveQuestions: ("FiveQuestions.md", PackageResources.FiveQuestions_md)
        case .howItWorks: ("HowItWorks.md", PackageResources.HowItWorks_md)
        case .changelog: ("Changelog.md", PackageResources.Changelog_md)
        }
    }
}
