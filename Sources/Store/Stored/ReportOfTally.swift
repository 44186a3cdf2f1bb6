package import Model

extension Report {
    /// Creates the report of a run from the tally of its deliveries.
    package init(run: Run, _ tally: DeliveryTally, devicesGone: Int, devicesSuspended: Int) {
        self.init(run: run, counts: tally.total)
        rejected = Self.reasons(tally, .rejected)
        unknown = Self.reasons(tally, .unknown)
        suppressed = Self.reasons(tally, .suppressed)
        byEnvironment = PushEnvironment.allCases.compactMap { environment in
            Self.slice(environment.rawValue, tally) { $0.environment == environment }
        }
        let locales = ReportedLocales(run.definition)
        if !locales.all.isEmpty {
            byLocale =
                locales.all.compactMap { locale in
                    Self.slice(locale.description, tally) { locales.locale(of: $0) == locale }
                } + [Self.slice("not rendered", tally) { locales.locale(of: $0) == nil }].compactMap(\.self)
        }
        byVariant = run.definition.campaign.variants.enumerated().compactMap { index, variant in
            Self.slice(variant.name, tally) { $0.variant == index }
        }
        // The summary of an empty audience has no rows, so set zero here.
        if counts.audience == 0 { (mayHaveArrived, suppressedAfterRequest) = (0, 0) }
        if let breakdown = tally.breakdown { take(breakdown) }
        attempts = tally.attempts
        possibleDuplicates = tally.possibleDuplicates
        self.devicesGone = devicesGone
        self.devicesSuspended = devicesSuspended
    }

    /// Returns the reasons, most frequent first.
    private static func reasons(_ tally: DeliveryTally, _ state: DeliveryState) -> [Report.Reason] {
        var counts: [Report.Reason: Int] = [:]
        for (group, count) in tally.counts where group.state == state {
            counts[Report.Reason(status: group.status, reason: group.reason ?? "", count: 0), default: 0] += count
        }
        return counts.map { Report.Reason(status: $0.key.status, reason: $0.key.reason, count: $0.value) }
            .sorted { ($1.count, $0.reason, $0.status) < ($0.count, $1.reason, $1.status) }
    }

    /// Returns `nil` if nothing is counted.
    private static func slice(
        _ name: String, _ tally: DeliveryTally, where isIncluded: (DeliveryTally.Group) -> Bool
    ) -> Report.Slice? {
        let counts = tally.sum(where: isIncluded)
        return counts.audience == 0 ? nil : Report.Slice(name: name, counts: counts)
    }
}

/// The languages of a run: each variant's template has its own.
private struct ReportedLocales {
    /// In the order of the templates, the campaign's own first.
    private(set) var all: [LocaleTag] = []
    private var byVariant: [Int?: [LocaleTag]] = [:]

    init(_ definition: RunDefinition) {
        let variants: [Int?] = [nil] + definition.campaign.variants.indices.map(\.self)
        for variant in variants {
            let locales = definition.template(ofVariant: variant).locales
            byVariant[variant] = locales
            all += locales.filter { !all.contains($0) }
        }
    }

    func locale(of group: DeliveryTally.Group) -> LocaleTag? {
        guard let index = group.localeIndex, let locales = byVariant[group.variant], locales.indices.contains(index)
        else { return nil }
        return locales[index]
    }
}

extension SumCheck {
    private static let figures: [(name: String, path: any KeyPath<DeliveryCounts, Int> & Sendable)] = [
        ("audience", \.audience), ("pending", \.pending), ("leased", \.leased), ("accepted", \.accepted),
        ("rejected", \.rejected), ("unknown", \.unknown), ("suppressed", \.suppressed),
    ]

    /// Returns the differences between the stored counts and the recounted rows, in words.
    package static func problems(stored: DeliveryCounts, recounted: DeliveryCounts) -> [String] {
        var problems: [String] = []
        if !stored.closes { problems.append("the counts add up to \(stored.sum), not to \(stored.audience)") }
        if stored != recounted {
            let differing = figures.filter { stored[keyPath: $0.path] != recounted[keyPath: $0.path] }
            func text(_ counts: DeliveryCounts) -> String {
                differing.map { "\($0.name) \(counts[keyPath: $0.path])" }.joined(separator: ", ")
            }
            problems.append("the counts are \(text(stored)); the rows give \(text(recounted))")
        }
        return problems
    }
}

extension Timeline {
    /// Returns the differences between a whole timeline and the run's counts, in words. Single slots cannot be
    /// compared, but the sum of each outcome can. Retries and response times have no counterpart in the counts.
    package func problems(besides account: DeliveryCounts) -> [String] {
        guard isWhole else { return [] }
        let total = total
        let compared = [
            ("accepted", total.accepted, account.accepted),
            ("rejected", total.rejected - total.reopened, account.rejected),
            ("unknown", total.unknown, account.unknown), ("suppressed", total.suppressed, account.suppressed),
        ]
        return compared.filter { $0.1 != $0.2 }.map { name, inTimeline, inAccount in
            "the timeline has \(inTimeline) \(name), but the counts have \(inAccount)"
        }
    }
}
