package import Model

/// How many devices a run may turn out to be for, once its audience is written down. It was counted before it was made,
/// and weighed, signed or let through as that many; what it has grown to since is nothing that anybody has seen.
package struct ReachLimits: Hashable, Sendable {
    /// As counted when it was made or, once it was found to have grown, then.
    package var reach: Int
    /// A person's `resume` raises it, see ``raised``; nil: any.
    package var most: Int?
    /// Nothing raises it: more needs signatures, or other ones; nil: any.
    package var bound: Int?
    /// What the segments held that were signed, or that the plan named which the run was held to; `nil` for any other run.
    package var segments: SegmentContents?

    package init(reach: Int, most: Int? = nil, bound: Int? = nil, segments: SegmentContents? = nil) {
        self.reach = reach
        self.most = most
        self.bound = bound
        self.segments = segments
    }

    /// Whether the devices have to be counted before the audience is written down.
    package var isBounded: Bool { most != nil || bound != nil }

    /// Returns the limits of a run that its signatures let through. No signature lets more devices pass than its own reach
    /// and drift, and none stands for other members of a segment.
    package static func signed(
        _ limits: ReachLimits?, _ demand: ApprovalDemand, _ evidence: ApprovalEvidence
    ) -> ReachLimits? {
        guard evidence.brokenGlass == nil else { return limits }
        var held = limits ?? ReachLimits(reach: demand.policy.reach)
        let signed = evidence.signatures.map { evidence.policy.rule.most(signedFor: $0.reach) }
        held.bound = (signed + [held.bound].compactMap(\.self)).min()
        held.segments = demand.segments
        return held
    }

    /// Of a run that was weighed by a volume brake: a tenth more than was counted, and whatever is never held.
    package static func most(forReach reach: Int, _ brake: Configuration.VolumeBrake) -> Int {
        max(tenthMore(reach), brake.atLeast)
    }

    /// What is in force once a person has seen ``reach``, and lets it go.
    package var raised: Int? { most.map { max($0, Self.tenthMore(reach)) } }

    /// The pause of a run whose segments hold something else than was planned or signed; `nil` if they hold the same.
    ///
    /// - Parameter now: the contents in the snapshot that is frozen.
    package func halt(_ run: Int64, segments now: SegmentContents) -> GrownRun? {
        guard let changed = segments?.changes(to: now), !changed.isEmpty else { return nil }
        return GrownRun(
            run: run, reach: reach, halt: .grown,
            reason: "was planned with other contents of segment \(changed.joined(separator: ", ")); "
                + "`fanfare cancel \(run)` ends it, and another run can be planned and approved")
    }

    /// Nil: it may go.
    ///
    /// - Parameter reach: as found now, with what is written down already.
    package func halt(_ run: Int64, at reach: Int) -> GrownRun? {
        if let bound, reach > bound {
            return GrownRun(
                run: run, reach: reach, halt: .grown,
                reason: "would reach \(reach.counted("device")) by now, and approvals let \(bound.grouped) at most; "
                    + "`fanfare cancel \(run)` ends it, and another run can be approved")
        }
        if let most, reach > most {
            return GrownRun(
                run: run, reach: reach, halt: .volume,
                reason: "would reach \(reach.counted("device")) by now, and was weighed with \(self.reach.grouped); "
                    + "`fanfare resume \(run)` sends it, `fanfare cancel \(run)` does not")
        }
        return nil
    }

    private static func tenthMore(_ reach: Int) -> Int { reach + max(1, reach / 10) }
}

/// A run whose audience was not written down, since it is more than anybody has seen. It is paused, and says why.
package struct GrownRun: Error, Hashable, Sendable, CustomStringConvertible {
    package var run: Int64
    package var reach: Int
    package var halt: RunHalt
    package var reason: String

    package var description: String { "run \(run) \(reason)" }
}
