import Sending

extension ManageSegments {
    /// What whoever defines a segment has seen of it.
    package enum Condition: Hashable, Sendable {
        /// There is none of that name.
        case new
        /// It has the expression of this ``SegmentResult/tag``.
        case unchanged(tag: String)

        /// - Parameter known: the segment as it is; `nil`: there is none.
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

/// Why a segment is not defined: it is not as the caller has seen it. It stands as it stood.
package enum SegmentRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    case taken(SegmentResult)
    case changedMeanwhile(SegmentResult)
    case gone(String)

    /// The segment as it is; `nil`: there is none.
    package var known: SegmentResult? {
        switch self {
        case .taken(let known), .changedMeanwhile(let known): known
        case .gone: nil
        }
    }

    package var description: String {
        switch self {
        case .taken(let known):
            "the segment \"\(known.name)\" is there already, and nothing is written over it; open it to change it, or give "
                + "the new one another name"
        case .changedMeanwhile(let known):
            "the segment \"\(known.name)\" was changed by another user since you opened it; nothing is overwritten: compare "
                + "the two expressions, and save yours again if it is to count"
        case .gone(let name):
            "the segment \"\(name)\" is gone since you opened it; save it as a new one if it is meant"
        }
    }
}

extension SegmentResult {
    /// Tells one expression from another: its SHA-256 in hex. `nil`: the segment has members that were given.
    package var tag: String? { expression.map { ContentHash.sha256(Array($0.utf8)) } }
}
