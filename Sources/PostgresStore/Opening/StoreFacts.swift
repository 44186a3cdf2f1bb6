import RelationalStore
/// The state of a database before anything is written to it.
struct StoreFacts {
    /// `nil` if this user has no schema to work in.
    let schema: String?
    let isReplica: Bool
    let isReadOnly: Bool
    let encoding: String
    let mayCreate: Bool
    /// `nil` if there is no store.
    let version: Int?
    /// The relations of a schema that has no store of Fanfare; at most three names.
    let tables: [String]
    /// The tables of the store for which this user lacks rights; at most three names.
    let forbidden: [String]

    /// - Parameter isReading: whether the store is opened for reading only.
    init(_ db: PostgresSession, isReading: Bool = false) throws {
        let facts = try db.rows(
            """
            SELECT current_schema()::text, pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',
                current_setting('server_encoding'),
                coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
                \(Self.hasStore)
            """)
        guard let row = facts.first else { throw StoreOpeningFault.noSchema(server: db.server) }
        schema = try row.textOrNil(0)
        isReplica = try row.bool(1)
        isReadOnly = try row.bool(2)
        encoding = try row.text(3)
        mayCreate = try row.bool(4)
        let isStore = try row.bool(5)
        tables = isStore ? [] : try Self.tables(db)
        forbidden = isStore ? try Self.forbidden(db, isReading) : []
        version =
            isStore && !forbidden.contains(Schema.mark)
            ? try db.first("SELECT max(version) FROM fanfare_migration") { try $0.intOrNil(0) ?? 0 } : nil
    }

    /// The condition that the schema has a store. It reads the rows of the catalogue. A look-up by name uses the
    /// session's cache, which may not have a table that another session has just created.
    private static let hasStore = """
        EXISTS (
            SELECT FROM pg_class AS mark
            WHERE mark.relnamespace = current_schema()::regnamespace AND mark.relname = 'fanfare_migration'
        )
        """

    /// Returns tables, views and sequences that belong to no extension. Returns none if another process has created
    /// a store since the first check. The migration checks again under its lock.
    private static func tables(_ db: PostgresSession) throws -> [String] {
        try db.all(
            """
            SELECT relname::text FROM pg_class
            WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
                AND NOT \(Self.hasStore)
                AND NOT EXISTS (
                    SELECT FROM pg_depend
                    WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
                )
            ORDER BY relname LIMIT 3
            """
        ) { try $0.text(0) }
    }

    /// Returns the tables that this user may not use. Reading needs SELECT on all tables except
    /// ``AdministratorSQL/secrets``. Sending needs SELECT on all tables and the rights of their owner, because each
    /// run gets its own table.
    private static func forbidden(_ db: PostgresSession, _ isReading: Bool) throws -> [String] {
        try db.all(
            """
            SELECT relname::text FROM pg_class
            WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
                AND relowner = (
                    SELECT relowner FROM pg_class
                    WHERE oid = (quote_ident(current_schema()) || '.fanfare_migration')::regclass
                )
                AND NOT CASE
                    WHEN $1 THEN has_table_privilege(oid, 'SELECT') OR relname = ANY ($2)
                    ELSE has_table_privilege(oid, 'SELECT') AND pg_has_role(relowner, 'USAGE')
                END
            ORDER BY relname <> 'fanfare_migration', relname LIMIT 3
            """, isReading, AdministratorSQL.secrets
        ) { try $0.text(0) }
    }
}

/// The reason why a database is not opened as a store. Nothing in it was changed.
package enum StoreOpeningFault: Error, Hashable, Sendable {
    case newerVersion(server: String, found: Int, known: Int)
    /// The store is older and was opened for reading only, which cannot migrate it.
    case olderVersion(server: String, found: Int, known: Int)
    /// The database holds tables of another program.
    case otherProgram(server: String, tables: [String])
    /// There is no store, and this command may not create one.
    case noStore(server: String)
    case readOnly(server: String, isReplica: Bool)
    case encoding(server: String, found: String)
    case noSchema(server: String)
    /// There is no store yet, and this user may not create its tables.
    case mayNotCreate(server: String, schema: String)
    case mayNotUse(server: String, tables: [String])
    case noNamespace(server: String)
}

extension StoreOpeningFault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .newerVersion(let server, let found, let known):
            "\(server) was written by a newer Fanfare (store version \(found), this Fanfare supports \(known)); use "
                + "the newer Fanfare"
        case .olderVersion(let server, let found, let known):
            "\(server) was written by an older Fanfare (store version \(found), this Fanfare uses \(known)); start "
                + "`fanfare serve` on it to upgrade the store"
        case .otherProgram(let server, let tables):
            "\(server) holds tables of another program (\(tables.joined(separator: ", "))); name an empty database, or "
                + "create one with `createdb`"
        case .noStore(let server):
            "there is no store at \(server); correct the URL, or create one there with `fanfare devices import FILE`"
        case .readOnly(let server, let isReplica):
            "\(server) is read-only: it is " + (isReplica ? "a replica" : "set to read only")
                + "; name the primary, or all hosts of the cluster"
        case .encoding(let server, let found):
            "\(server) uses the encoding \(found); create a database with `createdb --encoding=UTF8 "
                + "--template=template0`"
        case .noSchema(let server):
            "this user cannot use any schema at \(server); GRANT USAGE, CREATE ON SCHEMA public to it"
        case .mayNotCreate(let server, let schema):
            "this user may not create tables in the schema \(schema) at \(server); GRANT it CREATE ON SCHEMA "
                + "\(schema), or make the user the owner of the database"
        case .mayNotUse(let server, let tables):
            "this user may not use the store's tables at \(server) (\(tables.joined(separator: ", "))); connect as their "
                + "owner, or GRANT the owner's role to this user"
        case .noNamespace(let server): "the store \(server) is damaged: it has no name; restore it from a backup"
        }
    }
}
