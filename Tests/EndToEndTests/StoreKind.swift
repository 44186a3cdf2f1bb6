import Foundation
import TestSupport
import Testing

/// What an installation keeps its store in: what a command does is the same on each.
enum StoreKind: String, CaseIterable, CustomTestStringConvertible {
    case sqlite, postgres

    /// Those that can be had here.
    static var available: [StoreKind] { PostgresCluster.isAvailable ? allCases : [.sqlite] }

    var testDescription: String { rawValue }

    /// For `store:`: a file beside the configuration, or an empty database of its own.
    func address() async throws -> String {
        switch self {
        case .sqlite: return "fanfare.sqlite"
        case .postgres:
            let cluster = try await PostgresCluster.shared
            return cluster.url(try await cluster.makeDatabase())
        }
    }
}
