package import Model

/// The plans that people have made. They are kept for a while, so that each has an address.
///
/// Each method is one transaction.
package protocol PlanLog: Sendable {
    /// Stores a plan and returns its number. Deletes the plans that are older than ``SavedPlans/kept``, and the oldest
    /// above ``SavedPlans/countMax``.
    func savePlan(_ plan: SavedPlan) async throws -> Int64

    /// Returns `nil` if there is no such plan, or no longer.
    func savedPlan(_ id: Int64) async throws -> SavedPlan?

    /// Returns plans, the newest first.
    ///
    /// - Parameters:
    ///   - file: the name of the campaign's file; `nil` for all campaigns.
    ///   - id: the last plan of the previous page; `nil` for the first page.
    func savedPlans(file: String?, before id: Int64?, limit: Int) async throws -> [SavedPlan]

    /// Gives the send of a plan another name.
    func renamePlan(_ id: Int64, to occurrence: String) async throws

    /// Returns the newest plan with this digest; `nil` if there is none.
    func savedPlan(digest: String) async throws -> SavedPlan?
}

/// How long plans are kept, and how many.
package enum SavedPlans {
    package static let kept: Duration = .seconds(90 * 86_400)
    package static let countMax = 5_000
}
