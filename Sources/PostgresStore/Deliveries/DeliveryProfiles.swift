import Store
import RelationalStore

/// Reads and stores the profiles of deliveries.
struct DeliveryProfiles {
    private let db: PostgresSession

    init(_ db: PostgresSession) { self.db = db }

    /// Returns the numbers of the profiles, in order, and stores new profiles. Another sender may store the same
    /// profiles at the same time.
    func numbers(of profiles: [DeliveryProfile]) throws -> [Int64?] {
        guard !profiles.isEmpty else { return [] }
        let (locales, versions) = (profiles.map(\.locale), profiles.map(\.appVersion))
        let (zones, countries) = (profiles.map(\.timeZone), profiles.map(\.country))
        let given = "unnest($1::text[], $2::text[], $3::text[], $4::text[])"
        // All senders insert in the same order, so that no two wait for each other.
        try db.execute(
            """
            INSERT INTO delivery_profile (locale, app_version, time_zone, country)
            SELECT * FROM \(given) AS given (locale, app_version, time_zone, country)
            WHERE NOT EXISTS (
                SELECT 1 FROM delivery_profile AS known
                WHERE known.locale = given.locale AND known.app_version = given.app_version
                    AND known.time_zone = given.time_zone AND known.country = given.country
            )
            ORDER BY 1, 2, 3, 4
            ON CONFLICT DO NOTHING
            """, locales, versions, zones, countries)
        return try db.all(
            """
            SELECT known.id FROM \(given) WITH ORDINALITY AS given (locale, app_version, time_zone, country, place)
            LEFT JOIN delivery_profile AS known
                ON known.locale = given.locale AND known.app_version = given.app_version
                    AND known.time_zone = given.time_zone AND known.country = given.country
            ORDER BY given.place
            """, locales, versions, zones, countries
        ) { try $0.int64OrNil(0) }
    }
}
