import Platform

extension ManageSegments {
    /// The state of a segment that the caller has seen before defining it.
    package enum Condition: Hashable, Sendable {
        /// No segment has this name.
        case new
        /// The segment's expression has this ``SegmentResult/tag``.
        case unchanged(tag: String)

        /// Throws ``SegmentRefusal`` if the segment is not in this state.
        ///
        /// - Parameter known: the segment as it is now; `nil` if there is none.
        func require(_ name: String, _ known: SegmentResult?) throws {
            switch (self, known) {
            case (.new, nil): break
            case (.new, let known?): throw SegmentRefusal.taken(known)
            case (.unchanged, nil): throw SegmentRefusal.gone(name)
            case (.unchanged(let tag), let known?):
                guard known.tag == tag else { throw SegmentRefusal.changedMeanwhile(known) }
            }
        }
    }
}

/// The reason why a segment is not defined: it is not in the state that the caller has seen. The segment stays
/// unchanged.
package enum SegmentRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    case taken(SegmentResult)
    case changedMeanwhile(SegmentResult)
    case gone(String)

    /// The segment as it is now; `nil` if there is none.
    package var known: SegmentResult? {
        switch self {
        case .taken(let known), .changedMeanwhile(let known): known
        case .gone: nil
        }
    }

    package var description: String {
        switch self {
        case .taken(let known):
            "the segment \"\(known.name)\" already exists and was not overwritten; open it to change it, or give "
                + "the new segment another name"
        case .changedMeanwhile(let known):
            "the segment \"\(known.name)\" was changed by another user since you opened it; nothing is overwritten: compare "
                + "the two expressions, and save yours again to replace it"
        case .gone(let name):
            "the segment \"\(name)\" was deleted after you opened it; to keep your expression, save it as a new segment"
        }
    }
}

extension SegmentResult {
    /// The SHA-256 of the expression in hex, which identifies it; `nil` for a segment of imported members.
    package var tag: String? { expression.map { Digest.sha256Hex(Array($0.utf8)) } }
}
