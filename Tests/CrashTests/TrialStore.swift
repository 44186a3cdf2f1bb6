import Foundation
import TestSupport

/// The location of a trial's store, and how the test reads its rows.
enum TrialStore {
    case file(folder: String)
    case server(PostgresCluster, database: String)

    /// Creates a new database on the cluster.
    static func made(in cluster: PostgresCluster) throws -> TrialStore {
        let name = "trial_" + UUID().uuidString.lowercased().replacing("-", with: "")
        try cluster.sql("CREATE DATABASE \(name) TEMPLATE template0 \(cluster.place)")
        return .server(cluster, database: name)
    }

    /// Returns the store's address for the configuration.
    ///
    /// - Parameter standby: a server that may take over, which the address names second.
    func address(through proxy: CuttingProxy?, standby: PostgresCluster?) -> String {
        switch self {
        case .file(let folder): return "\(folder)/fanfare.sqlite"
        case .server(let cluster, let database):
            if let standby {
                return "postgres://postgres@/\(database)?host=\(cluster.folder),\(standby.folder)&port=5432,5432"
                    + "&target_session_attrs=read-write"
            }
            return proxy?.url(database) ?? cluster.url(database)
        }
    }

    /// - Parameter isWhole: whether to read each delivery.
    func record(isWhole: Bool = false) throws -> StoreRecord {
        switch self {
        case .file(let folder): try StoreRecord(folder: folder, isWhole: isWhole)
        case .server(let cluster, let database): try StoreRecord(cluster, database, isWhole: isWhole)
        }
    }
}
