import Foundation

/// The address of a store on PostgreSQL: `postgres://user@host:port/database?option=value`.
///
/// The rules are those of libpq's URLs: `%XX` for special characters, `[::1]` for IPv6, several hosts with commas, a
/// Unix socket as `?host=/folder` or `postgres://%2Ffolder/database`. If there are several hosts, one that responds
/// and accepts writes is used; see `PostgresHosts`. A database must be named.
///
/// TLS: a remote server must prove its name with a certificate (`sslmode=verify-full`). Over a Unix socket and the
/// loopback interface, libpq's own default applies. An `sslmode` in the URL replaces both. The trusted authorities
/// come from `sslrootcert`, from `~/.postgresql/root.crt`, or from the system.
///
/// The password comes from one of three places:
///
/// - the URL;
/// - the file that `password_file` names, with no other content;
/// - the `PGPASSFILE` file, whose lines libpq reads.
///
/// No description of an address contains the password.
package struct PostgresAddress: Hashable, Sendable {
    package struct Host: Hashable, Sendable {
        /// A name, an address, or the folder of a Unix socket.
        package let name: String
        package let port: Int

        package var isSocket: Bool { name.hasPrefix("/") }

        /// Whether the host is this machine.
        package var isLocal: Bool {
            isSocket || name == "localhost" || name == "::1" || name.wholeMatch(of: /127(\.\d{1,3}){3}/) != nil
        }
    }

    package let hosts: [Host]
    package let user: String?
    package let database: String
    package let password: String?
    /// The URL's options after `?`, by name. Each name is one of ``PostgresOption``.
    package let options: [PostgresOption: String]

    package init(_ url: String) throws(PostgresAddressFault) {
        let schemes = ["postgres://", "postgresql://"]
        guard let scheme = schemes.first(where: { url.lowercased().hasPrefix($0) }) else { throw .notPostgres }
        let parts = url.dropFirst(scheme.count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let place = parts[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        var login = ""
        var hosts = String(place[0])
        if let at = hosts.lastIndex(of: "@") {
            login = String(hosts[..<at])
            hosts = String(hosts[hosts.index(after: at)...])
        }
        let database = place.count > 1 ? String(place[1]) : ""
        let query = parts.count > 1 ? String(parts[1]) : ""
        // A password that should have been escaped as %XX shows up here in pieces. The error repeats none of it.
        guard !(database + query).contains("@"), !database.contains("/"), !(database + query).contains("#") else {
            throw .unescaped
        }
        let options = try Self.options(query)
        let names = login.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let user = try Self.decoded(names.first ?? "")
        let password = try Self.decoded(names.count > 1 ? names[1] : "")
        let name = try Self.decoded(database)
        self.user = options[.user] ?? (user.isEmpty ? nil : user)
        self.password = options[.password] ?? (password.isEmpty ? nil : password)
        self.database = options[.dbname] ?? name
        self.hosts = try Self.hosts(hosts, options)
        self.options = options.filter { !$0.key.isPlace }
        guard !self.database.isEmpty else { throw .noDatabase }
    }

    /// Whether named prepared statements are used. `prepare=off` in the URL turns them off. Turn them off behind a
    /// pooler that may give each transaction another server connection and does not track prepared statements. If such
    /// a pooler is detected, named statements are abandoned in any case.
    package var usesNamedStatements: Bool { options[.prepare] != "off" }

    package func number(_ option: PostgresOption) -> Int? { options[option].flatMap { Int($0) } }
}

extension PostgresAddress: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The address without password and options, for people and logs. The folder of a socket is shown as URL syntax
    /// requires.
    package var description: String {
        let start = "postgres://" + (user.map { "\($0)@" } ?? "")
        if hosts.count == 1, hosts[0].isSocket {
            let port = hosts[0].port == Self.defaultPort ? "" : "&port=\(hosts[0].port)"
            return "\(start)/\(database)?host=\(hosts[0].name)\(port)"
        }
        return start + hosts.map(\.description).joined(separator: ",") + "/\(database)"
    }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: ["url": description]) }
}

extension PostgresAddress {
    /// Returns the command that copies the database to a file while it is in use. The command asks for a password, or
    /// reads PGPASSFILE.
    package func dumpCommand(to file: String) -> String {
        let places = [hosts.map(\.name).joined(separator: ","), hosts.map { "\($0.port)" }.joined(separator: ",")]
        let arguments =
            ["--file=\(file)", "--host=\(places[0])", "--port=\(places[1])"]
            + (user.map { ["--username=\($0)"] } ?? []) + ["--dbname=\(database)"]
        return (["pg_dump", "--format=custom"] + arguments.map { $0.shellWord(allowing: "-_./=:,@") }).joined(
            separator: " ")
    }
}

extension PostgresAddress.Host: CustomStringConvertible {
    package var description: String { isSocket ? name : (name.contains(":") ? "[\(name)]" : name) + ":\(port)" }
}

/// An option after the `?` of the URL: libpq's names, and two of Fanfare's own.
package enum PostgresOption: String, CaseIterable, Sendable {
    case host, port, user, password, dbname
    case sslmode, sslrootcert, sslcert, sslkey, sslcrl, sslnegotiation
    case passfile
    case passwordFile = "password_file"
    case prepare
    case applicationName = "application_name"
    case connectTimeout = "connect_timeout"
    case keepalivesIdle = "keepalives_idle"
    case tcpUserTimeout = "tcp_user_timeout"
    case targetSessionAttributes = "target_session_attrs"
    case channelBinding = "channel_binding"
    case options

    /// Whether the option repeats a part that the front of the URL may also state.
    package var isPlace: Bool { [.host, .port, .user, .password, .dbname].contains(self) }

    /// The values that the option may have. `nil` for any value.
    package var values: [String]? {
        switch self {
        case .sslmode: ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
        case .prepare: ["on", "off"]
        case .targetSessionAttributes:
            ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"]
        case .channelBinding: ["disable", "prefer", "require"]
        default: nil
        }
    }

    /// Whether the option is a path on this machine.
    package var isFile: Bool { [.sslrootcert, .sslcert, .sslkey, .sslcrl, .passwordFile].contains(self) }

    package var isNumber: Bool { [.connectTimeout, .keepalivesIdle, .tcpUserTimeout].contains(self) }
}

/// An error in the URL of a store. Its description contains no password and no possible piece of one.
package enum PostgresAddressFault: Error, Hashable, Sendable {
    case notPostgres
    case badEscape
    case unescaped
    case badPort
    case noDatabase
    case unequalPorts
    case unknownOption(String?)
    case badValue(option: PostgresOption, allowed: [String])
    case unreadablePassword(path: String, reason: String)
    /// This user may not read the password file, or may not enter a folder on the way to it.
    case forbiddenPassword(path: String)
}

extension PostgresAddressFault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notPostgres:
            "the store's URL does not begin with postgres://; write postgres://user@host:5432/database, or the path of a SQLite "
                + "file"
        case .badEscape: "a % in the store's URL is not followed by two hexadecimal digits; write % itself as %25"
        case .unescaped:
            "the store's URL contains an unescaped special character; in a user name or password write @ / ? # : % "
                + "as %40 %2F %3F %23 %3A %25"
        case .badPort:
            "a port of the store's URL is not a number from 1 to 65535; write host:5432, and special characters of a "
                + "password as %XX"
        case .noDatabase: "the store's URL names no database; write postgres://user@host:5432/database"
        case .unequalPorts: "the store's URL has more or fewer ports than hosts; write one port, or one for each"
        case .unknownOption(let name):
            (name.map { "the store's URL has an unknown option \"\($0)\"" } ?? "the store's URL has an option without =")
                + "; known are " + PostgresOption.allCases.map(\.rawValue).joined(separator: ", ")
        case .badValue(let option, let allowed):
            "\(option.rawValue) of the store's URL must be one of " + allowed.joined(separator: ", ")
        case .unreadablePassword(let path, let reason):
            "cannot read the password of the store from \(path): \(reason); correct the path of password_file"
        case .forbiddenPassword(let path):
            "cannot read the password of the store from \(path): Permission denied; put the file where this user may read "
                + "it (as root: install -o root -g fanfare -m 640 \(path) /etc/fanfare/store.password), and name it as "
                + "password_file"
        }
    }
}

extension PostgresAddress {
    private static let defaultPort = 5432
    /// The folder where Debian's servers listen and where libpq looks.
    private static let socketFolder = "/var/run/postgresql"

    private static func decoded(_ text: String) throws(PostgresAddressFault) -> String {
        guard let decoded = text.removingPercentEncoding else { throw .badEscape }
        return decoded
    }

    private static func options(_ query: String) throws(PostgresAddressFault) -> [PostgresOption: String] {
        var options: [PostgresOption: String] = [:]
        for pair in query.split(separator: "&") {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard sides.count == 2 else { throw .unknownOption(nil) }
            guard let option = PostgresOption(rawValue: try decoded(sides[0])) else {
                // Repeat only a text that looks like a name: anything else could be a piece of a password.
                throw .unknownOption(sides[0].wholeMatch(of: /[a-z_]{1,40}/) == nil ? nil : sides[0])
            }
            let value = try decoded(sides[1])
            if let allowed = option.values, !allowed.contains(value) {
                throw .badValue(option: option, allowed: allowed)
            }
            if option.isNumber, Int(value).map({ $0 < 0 || $0 > 86_400_000 }) ?? true {
                throw .badValue(option: option, allowed: ["the numbers from 0 on"])
            }
            options[option] = value
        }
        return options
    }

    private static func hosts(
        _ text: String, _ options: [PostgresOption: String]
    ) throws(PostgresAddressFault) -> [Host] {
        if let named = options[.host] {
            return try hosts(named.split(separator: ",").map(String.init), ports: options[.port])
        }
        var names: [String] = []
        var ports: [String] = []
        for host in text.split(separator: ",", omittingEmptySubsequences: true) {
            let match = try? /(\[[0-9A-Fa-f:.%]+\]|[^:]*)(?::(.*))?/.wholeMatch(in: host)
            guard let match else { throw .badPort }
            names.append(try decoded(String(match.output.1).trimmingCharacters(in: ["[", "]"])))
            ports.append(match.output.2.map(String.init) ?? options[.port] ?? "\(defaultPort)")
        }
        return try hosts(names, ports: ports.isEmpty ? options[.port] : ports.joined(separator: ","))
    }

    private static func hosts(_ names: [String], ports: String?) throws(PostgresAddressFault) -> [Host] {
        let names = names.isEmpty ? [socketFolder] : names.map { $0.isEmpty ? socketFolder : $0 }
        let written = ports?.split(separator: ",").map(String.init) ?? ["\(defaultPort)"]
        let ports = written.compactMap { Int($0) }.filter { (1...65_535).contains($0) }
        guard ports.count == written.count else { throw .badPort }
        guard ports.count == 1 || ports.count == names.count else { throw .unequalPorts }
        return names.enumerated().map { Host(name: $1, port: ports.count == 1 ? ports[0] : ports[$0]) }
    }
}
