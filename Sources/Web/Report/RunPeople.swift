package import Campaigns
package import Model

/// The people behind a run, for its page and its report.
package struct RunPeople: Sendable {
    /// The actor that created the run: a person, a token or the daemon.
    var createdBy: String?
    /// The people who wrote what was sent, if its plan was approved.
    var authors: [String] = []
    var approvedBy: [String] = []

    init() {}

    /// Reads the people of a run.
    package init(_ run: Run, _ cases: UseCases) async throws {
        // A run may have more events than a page of them, and others may have been approved since.
        let created = EventFilter(run: run.id, kind: EventKind.runCreated.rawValue)
        createdBy = try await cases.audit.page(created, cursor: nil, limit: 1).events.first?.actorShown
        guard let approval = try await cases.approving.ofRun(run.id, now: cases.now) else { return }
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
