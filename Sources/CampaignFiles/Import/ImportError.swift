/// Why an import cannot begin or go on. Faults of single lines are no errors: they go to the rejects file.
package enum ImportError: Error, CustomStringConvertible {
    case unreadable(path: String, reason: String)
    /// The header, or what stands in its place; one text per problem, each with its place.
    case header([String])
    case rejectsUnwritable(path: String, reason: String)

    package var description: String {
        switch self {
        case .unreadable(let path, let reason): "\(path): cannot be read (\(reason)); check the path and permissions"
        case .header(let problems): problems.joined(separator: "\n")
        case .rejectsUnwritable(let path, let reason):
            "\(path): the rejects file cannot be written (\(reason)); name another with its folder in place"
        }
    }
}

/// The account of an import: `read` = `good` + `rejected`. Blank lines are none.
package struct ImportCounts: Hashable, Sendable {
    package var good = 0
    package var rejected = 0

    package init() {}

    package var read: Int { good + rejected }
}
