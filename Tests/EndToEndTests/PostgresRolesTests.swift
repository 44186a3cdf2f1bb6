import Foundation
import TestSupport
import Testing

/// The roles that `install --postgres` makes: each suffices for what it is for, and the reader changes nothing.
@Suite(.ownThread, .timeLimit(.minutes(5)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct PostgresRolesTests {
    private struct Roles {
        let cluster: PostgresCluster
        let database: String
        var owner: String { "owner of \(database)" }
        var reader: String { "reader of \(database)" }

        func url(_ role: String) -> String {
            cluster.url(database, user: role.replacing(" ", with: "%20"))
        }

        func sql(_ text: String) throws -> String { try cluster.sql(text, database: database) }
    }

    private func withRoles(_ body: @escaping @Sendable (Roles, Installation) throws -> Void) async throws {
        let cluster = try await PostgresCluster.shared
        let roles = Roles(cluster: cluster, database: try await cluster.makeDatabase())
        try await OwnThread.run { try body(roles, try Installation(devices: 5, store: roles.url(roles.owner))) }
    }

    /// As an administrator does who is told to run it again.
    private static func administer(_ roles: Roles, _ place: Installation) throws {
        let printed = try place.fanfare("install", "--postgres", "--owner", roles.owner, "--reader", roles.reader)
        try #require(printed.status == 0, "\(printed.errors)")
        _ = try roles.sql(printed.output)
    }

    /// A store with runs of both kinds of audience, one of them made after the reader was let in.
    private static func fill(_ roles: Roles, _ place: Installation) throws {
        try administer(roles, place)
        try place.importDevices()
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        let warned = try place.fanfare("doctor").output
        #expect(warned.contains("audience_sql: the role of the function fanfare_audience may not read"), "\(warned)")
        try administer(roles, place)
        try administer(roles, place)
        let doctor = try place.fanfare("doctor").output
        #expect(!doctor.contains("audience_sql"), "\(doctor)")
        let campaign = try place.folder.read("campaigns/new-podcast.yaml")
            .replacing("campaign: new-podcast", with: "campaign: analysts")
            .replacing(
                /audience: >-\n( .*\n)+/,
                with: "audience_sql: SELECT id FROM device_view WHERE installation_id <> 'install-0'\n")
        try place.folder.write(campaign, to: "campaigns/analysts.yaml")
        let run = try place.fanfare(
            "run", "analysts", "--yes", "--occurrence", "b", "--var", "title=T", "--var", "link_url=https://example.com"
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(try roles.sql("SELECT accepted FROM run ORDER BY id") == "5\n4")
    }

    @Test func `the owner sends, and the reader reads all but what opens doors`() async throws {
        try await withRoles { roles, place in
            try Self.fill(roles, place)
            let verified = try place.fanfare("verify")
            #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
            let reading = ["FANFARE_STORE": roles.url(roles.reader)]
            for words in [
                ["status"], ["report", "analysts", "--check"], ["report", "new-podcast", "--format", "json"],
                ["explain", "install-1"], ["verify"], ["audit"], ["devices", "show"], ["segments", "list"],
                ["schedule"],
                ["plan", "new-podcast"] + Installation.words,
            ] {
                let result = try Program.run(words, in: place.folder, environment: reading)
                #expect(result.status == 0, "\(words): \(result.output)\(result.errors)")
            }
            let asked = try Program.run(
                ["plan", "analysts"] + Installation.words, in: place.folder, environment: reading)
            #expect(asked.status == 78, "\(asked.errors)")
            #expect(asked.errors.contains("audience_sql: this user may not call the function"), "\(asked.errors)")
            let tokens = try Program.run(["tokens", "list"], in: place.folder, environment: reading)
            #expect(tokens.errors.contains("permission denied for table access_token"), "\(tokens.errors)")
        }
    }

    @Test func `the reader changes nothing of the store`() async throws {
        try await withRoles { roles, place in
            try Self.fill(roles, place)
            let reading = ["FANFARE_STORE": roles.url(roles.reader)]
            for words in [
                ["run", "new-podcast", "--yes"] + Installation.words, ["devices", "import", "devices.csv"],
                ["cancel", "1"], ["pause", "1"], ["tokens", "create", "x", "--role", "admin"],
            ] {
                let result = try Program.run(words, in: place.folder, environment: reading)
                let isRefused = result.status == 78 && result.errors.contains("may not use the store's tables")
                #expect(isRefused, "\(words): \(result.errors)")
            }
            let counts = try roles.sql(
                """
                SELECT
                    (SELECT count(*) FROM pg_class
                        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')
                        AND has_table_privilege('\(roles.reader)', oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')),
                    (SELECT count(*) FROM pg_class
                        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')
                        AND NOT has_table_privilege('\(roles.reader)', oid, 'SELECT')),
                    (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND CASE
                        WHEN relkind = 'S' THEN has_sequence_privilege('\(roles.reader)', oid, 'USAGE, UPDATE')
                    END),
                    has_schema_privilege('\(roles.reader)', 'public', 'CREATE'),
                    has_database_privilege('\(roles.reader)', current_database(), 'CREATE, TEMPORARY'),
                    pg_has_role('\(roles.reader)', '\(roles.owner)', 'MEMBER'),
                    has_function_privilege('\(roles.reader)', 'fanfare_audience(text,bigint,bigint)', 'EXECUTE')
                """)
            #expect(counts == "0|4|0|f|f|f|f")
            let analyst = try roles.sql(
                """
                SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
                WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')
                    AND has_any_column_privilege('fanfare_analyst', oid, 'SELECT, INSERT, UPDATE')
                """)
            #expect(analyst == "delivery_view device_view run_view segment_view tag_view")
        }
    }

    @Test func `a store of somebody else's is left alone, and names are taken as they are`() async throws {
        let cluster = try await PostgresCluster.shared
        let roles = Roles(cluster: cluster, database: try await cluster.makeDatabase())
        try await OwnThread.run {
            let place = try Installation(devices: 1, store: cluster.url(roles.database))
            try place.importDevices()
            let error = #expect(throws: (any Error).self) { try Self.administer(roles, place) }
            #expect("\(error.map { "\($0)" } ?? "")".contains("name its owner with --owner"))
            #expect(try roles.sql("SELECT count(*) FROM pg_roles WHERE rolname = '\(roles.owner)'") == "0")
            let odd = #"o'w%I"n"#
            let printed = try place.fanfare("install", "--postgres", "--owner", odd, "--schema", "x y")
            _ = try roles.sql(printed.output)
            #expect(try roles.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'o''w%I\"n'") == "1")
            #expect(try roles.sql("SELECT nspname FROM pg_namespace WHERE nspname = 'x y'") == "x y")
            let path = try roles.sql(
                """
                SELECT setconfig FROM pg_db_role_setting JOIN pg_roles ON pg_roles.oid = setrole
                WHERE rolname = 'o''w%I"n'
                """)
            #expect(path == #"{"search_path=\"x y\""}"#)
        }
    }
}
