package import Model

/// The limits of a run's audience at the freeze. The audience was counted before the run was created, and the run was
/// checked, signed or released with that count. The audience may have grown since, and no person has seen the new
/// number.
package struct ReachLimits: Hashable, Sendable {
    /// The number of devices, as counted when the run was created or when it was found to have grown.
    package var reach: Int
    /// The limit that a person's `resume` raises, see ``raised``; `nil` if there is none.
    package var most: Int?
    /// The limit that nothing raises, because more devices need more or other signatures; `nil` if there is none.
    package var bound: Int?
    /// The contents of the segments that were signed, or that were in the plan that the run must match; `nil` for any
    /// other run.
    package var segments: SegmentContents?

    package init(reach: Int, most: Int? = nil, bound: Int? = nil, segments: SegmentContents? = nil) {
        self.reach = reach
        self.most = most
        self.bound = bound
        self.segments = segments
    }

    /// Whether the devices must be counted before the freeze.
    package var isBounded: Bool { most != nil || bound != nil }

    /// Returns the limits of a run that was approved by signatures. A signature allows no more devices than its own
    /// reach and drift, and does not cover other members of a segment.
    package static func signed(
        _ limits: ReachLimits?, _ demand: ApprovalDemand, _ evidence: ApprovalEvidence
    ) -> ReachLimits? {
        guard evidence.emergencyOverride == nil else { return limits }
        var held = limits ?? ReachLimits(reach: demand.policy.reach)
        let signed = evidence.signatures.map { evidence.policy.rule.most(signedFor: $0.reach) }
        held.bound = (signed + [held.bound].compactMap(\.self)).min()
        held.segments = demand.segments
        return held
    }

    /// Returns the limit of a run that a volume brake checked: a tenth more than was counted, or the brake's `atLeast`
    /// if that is larger.
    package static func most(forReach reach: Int, _ brake: Configuration.VolumeBrake) -> Int {
        max(tenthMore(reach), brake.atLeast)
    }

    /// The limit in force after a person has seen ``reach`` and released the run.
    package var raised: Int? { most.map { max($0, Self.tenthMore(reach)) } }

    /// Returns the pause of a run whose segments hold something else than was planned or signed; `nil` if they hold the
    /// same.
    ///
    /// - Parameter now: the contents in the snapshot that is frozen.
    package func halt(_ run: Int64, segments now: SegmentContents) -> AudienceGrew? {
        guard let changed = segments?.changes(to: now), !changed.isEmpty else { return nil }
        return AudienceGrew(
            run: run, reach: reach, halt: .grown,
            reason: "was planned before a change to segment \(changed.joined(separator: ", ")); "
                + "`fanfare cancel \(run)` ends it, and another run can be planned and approved")
    }

    /// Returns the pause of a run that exceeds its limits; `nil` if the run may continue.
    ///
    /// - Parameter reach: the number of devices found now, including those that are written already.
    package func halt(_ run: Int64, at reach: Int) -> AudienceGrew? {
        if let bound, reach > bound {
            return AudienceGrew(
                run: run, reach: reach, halt: .grown,
                reason: "would reach \(reach.counted("device")) now, but approvals allow at most \(bound.grouped); "
                    + "`fanfare cancel \(run)` ends it, and another run can be approved")
        }
        if let most, reach > most {
            return AudienceGrew(
                run: run, reach: reach, halt: .volume,
                reason: "would reach \(reach.counted("device")) now, but was checked for \(self.reach.grouped); "
                    + "`fanfare resume \(run)` sends it, `fanfare cancel \(run)` ends it")
        }
        return nil
    }

    private static func tenthMore(_ reach: Int) -> Int { reach + max(1, reach / 10) }
}

/// The error for a run whose audience was not frozen, because it has grown or changed since a person approved it. The
/// run is paused, with the reason.
package struct AudienceGrew: Error, Hashable, Sendable, CustomStringConvertible {
    package var run: Int64
    package var reach: Int
    package var halt: RunHalt
    package var reason: String

    package var description: String { "run \(run) \(reason)" }
}
