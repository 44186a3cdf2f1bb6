import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func summary(run: Int64) async throws -> DeliveryCounts {
        try await read { db in try RunRow.require(db, run).counts }
    }

    package func report(_ run: Int64) async throws -> Report {
        try await read { db in
            let row = try RunRow.require(db, run)
            return try Self.report(of: row, OutcomeSummary(db, run).tally() ?? DeliveryTally(db, run: run), db)
        }
    }

    package func keptReport(_ run: Int64) async throws -> Report? {
        try await read { db in
            let row = try RunRow.require(db, run)
            return try OutcomeSummary(db, run).tally().map { try Self.report(of: row, $0, db) }
        }
    }

    private static func report(of row: Run, _ tally: DeliveryTally, _ db: Database) throws -> Report {
        var report = Report(run: row, counts: tally.total)
        report.rejected = reasons(tally, .rejected)
        report.unknown = reasons(tally, .unknown)
        report.suppressed = reasons(tally, .suppressed)
        report.byEnvironment = PushEnvironment.allCases.compactMap { environment in
            slice(environment.rawValue, tally) { $0.environment == environment }
        }
        let locales = ReportedLocales(row.definition)
        report.byLocale = locales.all.compactMap { locale in
            slice(locale.description, tally) { locales.locale(of: $0) == locale }
        }
        report.byVariant = row.definition.campaign.variants.enumerated().compactMap { index, variant in
            slice(variant.name, tally) { $0.variant == index }
        }
        report.attempts = tally.attempts
        report.possibleDuplicates = tally.possibleDuplicates
        let devices = try Row.fetchOne(
            db, sql: "SELECT devices_gone, devices_suspended FROM run WHERE id = :run", arguments: ["run": row.id])
        report.devicesGone = devices?[0] ?? 0
        report.devicesSuspended = devices?[1] ?? 0
        return report
    }

    package func check(_ run: Int64) async throws -> SumCheck {
        try await read { db in
            let stored = try RunRow.require(db, run).counts
            let summary = OutcomeSummary(db, run)
            let kept = try summary.tally()
            let prunedAt = try summary.prunedAt()
            let rows = try prunedAt == nil ? DeliveryTally(db, run: run) : kept
            let recounted = rows?.total ?? DeliveryCounts()
            var problems = try RunAudit(db, run).problems(stored: stored, recounted: recounted)
            if let kept, let rows, !kept.agrees(with: rows) {
                problems.append("the summary of its outcomes is not what the rows say")
            }
            return SumCheck(stored: stored, recounted: recounted, problems: problems, prunedAt: prunedAt)
        }
    }

    /// Most frequent first.
    private static func reasons(_ tally: DeliveryTally, _ state: DeliveryState) -> [Report.Reason] {
        var counts: [Report.Reason: Int] = [:]
        for (group, count) in tally.counts where group.state == state {
            counts[Report.Reason(status: group.status, reason: group.reason ?? "", count: 0), default: 0] += count
        }
        return counts.map { Report.Reason(status: $0.key.status, reason: $0.key.reason, count: $0.value) }
            .sorted { ($1.count, $0.reason, $0.status) < ($0.count, $1.reason, $1.status) }
    }

    /// Nil when there is nothing of it.
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

/// Looks for what must never be in the rows of a run.
struct RunAudit {
    private static let figures: [(name: String, path: any KeyPath<DeliveryCounts, Int> & Sendable)] = [
        ("audience", \.audience), ("pending", \.pending), ("leased", \.leased), ("accepted", \.accepted),
        ("rejected", \.rejected), ("unknown", \.unknown), ("suppressed", \.suppressed),
    ]

    private let db: Database
    private let run: Int64

    init(_ db: Database, _ run: Int64) {
        self.db = db
        self.run = run
    }

    func problems(stored: DeliveryCounts, recounted: DeliveryCounts) throws -> [String] {
        var problems: [String] = []
        if !stored.closes { problems.append("the account adds up to \(stored.sum), not to \(stored.audience)") }
        if stored != recounted {
            let differing = Self.figures.filter { stored[keyPath: $0.path] != recounted[keyPath: $0.path] }
            func text(_ counts: DeliveryCounts) -> String {
                differing.map { "\($0.name) \(counts[keyPath: $0.path])" }.joined(separator: ", ")
            }
            problems.append("the account says \(text(stored)); the rows say \(text(recounted))")
        }
        let open = try count("SELECT coalesce(sum(open), 0) FROM lease WHERE run_id = :run")
        if open != stored.leased {
            problems.append("leases wait for \(open) outcomes, the account for \(stored.leased)")
        }
        let stranded = try count(
            """
            SELECT count(*) FROM delivery
            WHERE run_id = :run AND state = \(DeliveryState.pending.rawValue) AND not_before = \(LeaseTransaction.inFlight)
            """)
        if stranded > open { problems.append("\(stranded) deliveries are marked in flight, \(open) are") }
        problems += try TimelineRow.problems(run, stored, db)
        if try !isDefinitionWhole() { problems.append("the definition was changed after the run was made") }
        return problems
    }

    private func count(_ sql: String) throws -> Int {
        try Int.fetchOne(db, sql: sql, arguments: ["run": run]) ?? 0
    }

    private func isDefinitionWhole() throws -> Bool {
        let row = try Row.fetchOne(
            db, sql: "SELECT definition, definition_hash FROM run WHERE id = :run", arguments: ["run": run])
        guard let row else { return false }
        return RunDefinitionText(json: row[0]).hash == row[1]
    }
}
