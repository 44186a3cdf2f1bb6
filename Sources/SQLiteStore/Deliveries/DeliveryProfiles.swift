import GRDB
import Store

/// The stored profiles of deliveries.
struct DeliveryProfiles {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// Returns the numbers of the profiles, in order, and stores new profiles.
    func numbers(of profiles: [DeliveryProfile]) throws -> [Int64] {
        try profiles.map { profile in
            let arguments: StatementArguments = [
                "locale": profile.locale, "version": profile.appVersion, "zone": profile.timeZone,
                "country": profile.country,
            ]
            let known = try Int64.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT id FROM delivery_profile
                        WHERE locale = :locale AND app_version = :version AND time_zone = :zone AND country = :country
                        """), arguments: arguments)
            if let known { return known }
            try db.cachedStatement(
                sql: """
                    INSERT INTO delivery_profile (locale, app_version, time_zone, country)
                    VALUES (:locale, :version, :zone, :country)
                    """
            ).execute(arguments: arguments)
            return db.lastInsertedRowID
        }
    }
}
