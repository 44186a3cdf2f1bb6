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

/// The written pages in reading order. Each raw value is the name of a file without its extension.
enum WrittenPage: String, CaseIterable {
    case guide = "Guide"
    case firstBroadcast = "FirstBroadcast"
    case writeACampaign = "WriteACampaign"
    case beforeYouSend = "BeforeYouSend"
    case whileItRuns = "WhileItRuns"
    case afterwards = "Afterwards"
    case feedback = "Feedback"
    case silentPushes = "SilentPushes"
    case segmentsAndImports = "SegmentsAndImports"
    case feedsAndTimers = "FeedsAndTimers"
    case operate = "Operate"
    case runbook = "Runbook"
    case severalMachines = "SeveralMachines"
    case api = "API"
    case dataForAnalysts = "DataForAnalysts"
    case fiveQuestions = "FiveQuestions"
    case howItWorks = "HowItWorks"
    case changelog = "Changelog"

    var page: GuidePage {
        let file = "\(rawValue).md"
        return GuidePage(name: file, text: EmbeddedFile.text(file))
    }
}
