package import Model
package import Store

/// Reads what became of a run.
package struct ReportRun: Sendable {
    private let store: any RunLog & OutcomeReader & DeliveryQueue

    package init(store: any RunLog & OutcomeReader & DeliveryQueue) {
        self.store = store
    }

    package func report(_ run: Run) async throws -> Report { try await store.report(run.id) }

    /// Counts every delivery again.
    package func check(_ run: Run) async throws -> SumCheck { try await store.check(run.id) }

    /// Hands out one CSV line per delivery, in batches, the heading first; tokens by their last 8 characters.
    package func outcomes(of run: Run, batch: @escaping @Sendable (String) throws -> Void) async throws {
        try batch(CSVLine.text(OutcomeLine.columns) + "\n")
        let ids = OutcomeLine(run: run, namespace: store.namespace)
        _ = try await store.outcomes(run: run.id) { rows in
            try batch(rows.map(ids.line).joined())
        }
    }
}

/// The account of a run, counted again: the stable shape of `report --check --format json`.
package struct SumCheckResult: Codable, Hashable, Sendable {
    package var run: Int64
    package var closes: Bool
    package var counts: CountsResult
    package var problems: [String]

    package init(_ run: Run, _ check: SumCheck) {
        self.run = run.id
        closes = check.closes
        counts = CountsResult(check.recounted)
        problems = check.problems
    }
}

extension SumCheck {
    /// The sums close, and the account kept is the one counted.
    package var closes: Bool { problems.isEmpty && recounted.closes && stored == recounted }
}
