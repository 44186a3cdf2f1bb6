import GRDB
import Store

/// The stored profiles of deliveries.
struct DeliveryProfiles {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// Returns their numbers, in order; stores those that are new.
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

    func texts(of numbers: Set<Int64>) throws -> [Int64: DeliveryProfile] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT id, locale, app_version, time_zone, country FROM delivery_profile
                WHERE id IN (SELECT value FROM json_each(:numbers))
                """, arguments: ["numbers": StoredJSON.array(Array(numbers))])
        return Dictionary(
            rows.map {
                ($0[0], DeliveryProfile(locale: $0[1], appVersion: $0[2], timeZone: $0[3], country: $0[4]))
            }, uniquingKeysWith: { first, _ in first })
    }
}
