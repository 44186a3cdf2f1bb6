import Foundation

/// A query for runs that also reads their definitions.
///
/// No index finds what a definition says, so a search reads the runs that match ``filter`` one after the other, and
/// stops after ``readMax`` of them.
package struct RunSearch: Hashable, Sendable {
    /// The maximum number of runs that a page reads.
    package static let readMax = 1000
    /// The maximum length of the words, in bytes.
    package static let termsBytesMax = 200
    /// The number of runs per read.
    package static let sliceMax = 200

    package var filter: RunFilter
    /// The app. `nil` for all apps.
    package var topic: String?
    /// `nil` for all push types.
    package var kind: PushType?
    /// Whether runs of background pushes are left out.
    package var hidesSilent: Bool
    /// The folded words, which must all be in the run's names, texts or variables. Empty for any run.
    private var terms: [String] = []

    package init(_ filter: RunFilter, topic: String? = nil, kind: PushType? = nil, hidesSilent: Bool = false) {
        self.filter = filter
        self.topic = topic
        self.kind = kind
        self.hidesSilent = hidesSilent
    }

    /// Returns `false` and changes nothing if the text is too long.
    package mutating func look(for text: String) -> Bool {
        guard text.utf8.count <= Self.termsBytesMax else { return false }
        terms = Self.folded(text).split(whereSeparator: \.isWhitespace).map(String.init)
        return true
    }

    package var hasTerms: Bool { !terms.isEmpty }

    /// Whether the index of runs finds exactly the matching runs.
    package var isIndexed: Bool { topic == nil && kind == nil && !hidesSilent && terms.isEmpty }

    package func matches(_ run: Run) -> Bool {
        let campaign = run.definition.campaign
        if let topic, !campaign.topic.isTopic(of: topic) { return false }
        if let kind, campaign.pushType != kind { return false }
        if hidesSilent, campaign.pushType == .background { return false }
        guard !terms.isEmpty else { return true }
        let names = "\(run.id) #\(run.id) \(run.campaign) \(run.occurrence)\n"
        let text = Self.folded(names + run.definition.searchedText)
        return terms.allSatisfy(text.contains)
    }

    private static func folded(_ text: String) -> String {
        text.folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
    }
}

/// The part of a list that a page shows.
package enum ListPosition: Hashable, Sendable {
    case newest
    /// The items older than this id, the next ones first.
    case before(Int64)
    /// The items newer than this id, the next ones first.
    case after(Int64)
}

/// A page of a search.
package struct FoundRuns: Sendable {
    /// Newest first.
    package var runs: [Run]
    /// The position of older runs. `nil` if there are none.
    package var older: ListPosition?
    /// The position of newer runs. `nil` if there are none.
    package var newer: ListPosition?
    /// The last run that was read, if the search stopped before all runs were read.
    package var stoppedAt: Run?

    package init(runs: [Run] = [], stoppedAt: Run? = nil) {
        self.runs = runs
        self.stoppedAt = stoppedAt
    }
}
