package import Model

/// The decision of a timer's call about the runs that earlier calls left unfinished.
///
/// A run that paused as late waits for a person. It does not keep other occurrences from starting, because its content
/// may be out of date. Every other unfinished run comes before a new one.
package struct UnfinishedRuns: Hashable, Sendable {
    package static let countMax = 100

    /// The run that the call continues; `nil` if it may create the new occurrence.
    package let next: Run?
    /// Late runs of other occurrences, oldest first. A person resumes or cancels each of them.
    package let late: [Run]

    /// - Parameters:
    ///   - runs: oldest first.
    ///   - occurrence: the occurrence of the call; `nil` if the call creates no run.
    package init(_ runs: [Run], occurrence: String?) {
        let late = occurrence.map { occurrence in runs.filter { $0.waitsAsLate && $0.occurrence != occurrence } } ?? []
        self.late = late
        next = runs.first { !late.contains($0) }
    }
}

extension Run {
    /// Whether the run paused as late, and no person has paused it since.
    package var waitsAsLate: Bool { state == .paused && halt == .late && pausedBy == nil }
}
