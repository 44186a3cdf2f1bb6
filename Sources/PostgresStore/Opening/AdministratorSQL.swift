import Model
import Store

/// The SQL that an administrator of the database runs. It sets up the roles of a store and their rights. It also
/// creates the function that runs an `audience_sql` as a role that may read only the analysts' views. A second run
/// changes nothing, or updates the rights and the function.
///
/// - The owner may create the store and send from it.
/// - The reader may read the store, except the tables in ``secrets``.
/// - The analyst may read the analysts' views, and cannot log in.
///
/// The function belongs to the analyst for two reasons:
///
/// - In a function that runs with its owner's rights, no statement can change the role, whatever the text calls.
/// - The function opens the text as a cursor, which is one query. In a function that is not `VOLATILE`, a query changes
///   nothing.
package struct AdministratorSQL {
    static let function = "fanfare_audience"
    static let signature = "\(function)(text,bigint,bigint)"
    /// The SQLSTATEs that the function raises. Their messages are, in this order: the number of columns, the number
    /// of the row with its kind of value, and the maximum number of ids.
    static let columnsState = "FF001"
    static let notAnIDState = "FF002"
    static let tooManyState = "FF003"

    /// The tables with credentials, or with hashes of credentials, which a reader could misuse.
    static let secrets = ["access_token", "installation_secret", "provider_token", "web_session"]

    private let owner, reader, schema: String
    private static let analyst = "fanfare_analyst"

    package init(owner: String = "fanfare", reader: String = "fanfare_reader", schema: String = "public") {
        self.owner = owner
        self.reader = reader
        self.schema = schema
    }

    package var text: String {
        """
        -- Roles and rights for a Fanfare store. An administrator runs this in the store's database: before the store is
        -- created, again after that, and after each upgrade.
        BEGIN;
        SET LOCAL search_path = pg_catalog;

        \(roles)

        \(rights)

        \(audienceFunction)

        \(rightsInStore)

        COMMIT;
        """
    }

    /// The `DO` block that creates the roles. It allows for another database of the cluster that creates the same
    /// role at the same time.
    private var roles: String {
        let made = [(owner, "LOGIN"), (reader, "LOGIN"), (Self.analyst, "NOLOGIN")].map { role, login in
            """
                BEGIN
                    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = \(literal(role))) THEN
                        CREATE ROLE \(name(role)) \(login);
                    END IF;
                EXCEPTION WHEN duplicate_object OR unique_violation THEN
                END;
            """
        }
        return """
            DO $do$
            DECLARE
                other text;
            BEGIN
            \(made.joined(separator: "\n"))
                -- No one logs in as the analyst, and it has the rights of no other role.
                IF EXISTS (
                    SELECT FROM pg_roles WHERE rolname = \(literal(Self.analyst)) AND (
                        rolcanlogin OR rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls
                    )
                ) THEN
                    ALTER ROLE \(Self.analyst)
                        NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
                END IF;
                FOR other IN
                    SELECT role.rolname FROM pg_auth_members
                    JOIN pg_roles AS role ON role.oid = roleid JOIN pg_roles AS analyst ON analyst.oid = member
                    WHERE analyst.rolname = \(literal(Self.analyst))
                LOOP
                    EXECUTE format('REVOKE %I FROM \(Self.analyst)', other);
                END LOOP;
            END
            $do$;
            """
    }

    private var rights: String {
        """
        CREATE SCHEMA IF NOT EXISTS \(name(schema));
        REVOKE CREATE ON SCHEMA \(name(schema)) FROM PUBLIC;
        GRANT USAGE, CREATE ON SCHEMA \(name(schema)) TO \(name(owner));
        GRANT USAGE ON SCHEMA \(name(schema)) TO \(name(reader)), \(Self.analyst);
        DO $do$
        BEGIN
            EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
            EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO \(inFormat(owner))', current_database());
            EXECUTE format('GRANT CONNECT ON DATABASE %I TO \(inFormat(reader))', current_database());\(searchPaths)
        END
        $do$;
        """
    }

    /// The statements that lead both roles to the schema, or nothing if they find it by default.
    private var searchPaths: String {
        guard schema != "public" else { return "" }
        return [owner, reader].map { role in
            "\n    EXECUTE format('ALTER ROLE \(inFormat(role)) IN DATABASE %I SET search_path = \(inFormat(schema))', "
                + "current_database());"
        }.joined()
    }

    private var audienceFunction: String {
        let function = "\(name(schema)).\(Self.signature)"
        return """
            -- The device ids that the query of an audience_sql selects; $1 in it is `moment`, in milliseconds.
            DROP FUNCTION IF EXISTS \(function);
            CREATE FUNCTION \(name(schema)).\(Self.function)(query text, moment bigint, most bigint) RETURNS SETOF bigint
            LANGUAGE plpgsql STABLE SECURITY DEFINER
            SET search_path = pg_catalog, \(name(schema)), pg_temp
            SET standard_conforming_strings = on
            SET TimeZone = 'UTC'
            AS $function$
            DECLARE
                answer refcursor;
                first record;
                device numeric;
                number bigint := 1;
                columns bigint;
                kind text;
                value text;
            BEGIN
                OPEN answer NO SCROLL FOR EXECUTE query USING moment;
                FETCH answer INTO first;
                IF NOT FOUND THEN
                    RETURN;
                END IF;
                SELECT count(*), min(json_typeof(each.value)), min(each.value #>> '{}') INTO columns, kind, value
                FROM json_each(row_to_json(first)) AS each;
                IF columns <> 1 THEN
                    RAISE SQLSTATE '\(Self.columnsState)' USING MESSAGE = columns;
                ELSIF kind <> 'number' THEN
                    RAISE SQLSTATE '\(Self.notAnIDState)' USING MESSAGE = number || ' ' || kind;
                END IF;
                device := value;
                LOOP
                    IF device IS NULL THEN
                        RAISE SQLSTATE '\(Self.notAnIDState)' USING MESSAGE = number || ' null';
                    ELSIF device <> trunc(device) THEN
                        RAISE SQLSTATE '\(Self.notAnIDState)' USING MESSAGE = number || ' fraction';
                    ELSIF number > most THEN
                        RAISE SQLSTATE '\(Self.tooManyState)' USING MESSAGE = most;
                    END IF;
                    RETURN NEXT device;
                    FETCH answer INTO device;
                    EXIT WHEN NOT FOUND;
                    number := number + 1;
                END LOOP;
            END
            $function$;
            ALTER FUNCTION \(function) OWNER TO \(Self.analyst);
            REVOKE ALL ON FUNCTION \(function) FROM PUBLIC;
            GRANT EXECUTE ON FUNCTION \(function) TO \(name(owner));
            """
    }

    /// The reader's and the analyst's rights. Each run has its own table, and default privileges let the reader read
    /// a new table immediately.
    private var rightsInStore: String {
        let place = name(schema)
        let views = AnalystViewNames.all.map { "\(place).\($0)" }.joined(separator: ", ")
        let secrets = Self.secrets.map { "\(place).\($0)" }.joined(separator: ", ")
        return """
            DO $do$
            BEGIN
                IF to_regclass(\(literal("\(place).\(Schema.mark)"))) IS NULL THEN
                    RAISE WARNING 'there is no store yet: run this again when it was made';
                    RETURN;
                END IF;
                IF NOT EXISTS (
                    SELECT FROM pg_class WHERE oid = \(literal("\(place).\(Schema.mark)"))::regclass
                        AND relowner = (SELECT oid FROM pg_roles WHERE rolname = \(literal(owner)))
                ) THEN
                    RAISE EXCEPTION 'the store is not \(inFormat(literal: owner))''s: name its owner with --owner';
                END IF;
                REVOKE ALL ON ALL TABLES IN SCHEMA \(place) FROM \(name(reader)), \(Self.analyst);
                REVOKE ALL ON ALL SEQUENCES IN SCHEMA \(place) FROM \(name(reader)), \(Self.analyst);
                GRANT SELECT ON ALL TABLES IN SCHEMA \(place) TO \(name(reader));
                -- To see where they are, which `verify` compares; not to take from them.
                GRANT SELECT ON ALL SEQUENCES IN SCHEMA \(place) TO \(name(reader));
                REVOKE ALL ON \(secrets) FROM \(name(reader));
                ALTER DEFAULT PRIVILEGES FOR ROLE \(name(owner)) IN SCHEMA \(place)
                    GRANT SELECT ON TABLES TO \(name(reader));
                GRANT SELECT ON \(views) TO \(Self.analyst);
                -- It leaves out runs of tests; no function of a query's is to see them before.
                ALTER VIEW \(place).delivery_view SET (security_barrier = true);
            END
            $do$;
            """
    }

    private func name(_ text: String) -> String { "\"\(text.replacingSign("\"", with: "\"\""))\"" }

    private func literal(_ text: String) -> String { "'\(text.replacingSign("'", with: "''"))'" }

    /// Returns a name for use in a literal that is the format of `format`.
    private func inFormat(_ text: String) -> String {
        name(text).replacingSign("'", with: "''").replacingSign("%", with: "%%")
    }

    /// Returns a text for use in the literal that is the format of `RAISE`.
    private func inFormat(literal text: String) -> String {
        text.replacingSign("'", with: "''").replacingSign("%", with: "%%")
    }
}
