package import Campaigns
package import Model

/// The people behind a run, for its page and its report.
package struct RunPeople: Sendable {
    /// The actor that created the run: a person, a token or the daemon.
    var createdBy: String?
    /// The people who wrote what was sent, if its plan was approved.
    var authors: [String] = []
    var approvedBy: [String] = []

    init(_ events: [EventResult]) {
        createdBy = events.first { $0.kind == EventKind.runCreated.rawValue }?.actorShown
    }

    /// Reads the people of a run.
    package init(_ run: Run, _ cases: UseCases) async throws {
        self.init(try await cases.audit.results(of: run))
        let past = try await cases.approving.list(includingPast: true, isCompared: false, now: cases.now).approvals
        guard let approval = past.first(where: { $0.run == run.id }) else { return }
        authors = approval.authors
        approvedBy = approval.signatures.filter { !$0.isRejection }.map(\.by)
    }

    var facts: [PlanView.Fact] {
        let facts = [("Started by", [createdBy ?? ""]), ("Written by", authors), ("Approved by", approvedBy)].map {
            ($0.0, $0.1.map(PersonName.shown).joined(separator: ", "))
        }
        return facts.filter { !$0.1.isEmpty }.map { .init(name: $0.0, value: $0.1) }
    }
}
