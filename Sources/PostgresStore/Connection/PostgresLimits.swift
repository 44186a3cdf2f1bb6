import Foundation
import Model
import Platform

extension PostgresAddress {
    /// The time that one host has to accept a connection.
    var connectTimeout: Duration { .seconds(number(.connectTimeout) ?? PostgresLimits.connectSeconds) }

    /// Debian's file of certificate authorities, for an address that names none.
    private static let systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"

    /// Returns libpq's parameters for one of the hosts, by libpq's names. They contain the password, so never print
    /// them.
    func parameters(for host: Host) throws(PostgresAddressFault) -> [(name: String, value: String)] {
        var parameters = [
            "host": host.name, "port": "\(host.port)", "dbname": database, "client_encoding": "UTF8",
            PostgresOption.applicationName.rawValue: "fanfare",
            // Otherwise libpq tries Kerberos first, which is slow to fail.
            "gssencmode": "disable",
            PostgresOption.sslmode.rawValue: host.isLocal ? "prefer" : "verify-full",
            // These settings detect a dead server within a minute on an idle connection, and sooner during a call.
            "keepalives": "1", PostgresOption.keepalivesIdle.rawValue: "30", "keepalives_interval": "10",
            "keepalives_count": "3",
            PostgresOption.tcpUserTimeout.rawValue: "\(PostgresLimits.unansweredSeconds * 1000)",
            PostgresOption.targetSessionAttributes.rawValue: hosts.count > 1 ? "read-write" : "any",
        ]
        for (option, value) in options where option != .prepare && option != .passwordFile {
            parameters[option.rawValue] = value
        }
        // Set this only for the `verify` modes, because libpq verifies the certificate in any mode if it has a file
        // of authorities.
        if parameters["sslmode"]?.hasPrefix("verify") == true, parameters["sslrootcert"] == nil {
            parameters["sslrootcert"] = authorities
        }
        parameters["user"] = user
        parameters["password"] = password
        if password == nil, let file = options[.passwordFile] { parameters["password"] = try Self.password(in: file) }
        return parameters.map { ($0.key, $0.value) }
    }

    /// The file in which libpq looks for authorities. If that file does not exist, it is the system's file, which
    /// libpq 15 does not use automatically.
    private var authorities: String {
        let environment = ProcessInfo.processInfo.environment
        let own = environment["PGSSLROOTCERT"] ?? (environment["HOME"] ?? "") + "/.postgresql/root.crt"
        return FileManager.default.fileExists(atPath: own) ? own : Self.systemAuthorities
    }

    /// Reads the password file at each opening, so that a new password needs no restart.
    private static func password(in path: String) throws(PostgresAddressFault) -> String {
        do {
            return try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)
        } catch {
            if access(path, R_OK) != 0, errno == EACCES { throw .forbiddenPassword(path: path) }
            let reason = FileManager.default.fileExists(atPath: path) ? "it is not text" : "there is no file"
            throw .unreadablePassword(path: path, reason: reason)
        }
    }
}

/// The limits of a connection, each with its reason.
package enum PostgresLimits {
    /// The time limit for a connection to one host. Every running server accepts a connection in less time.
    static let connectSeconds = 10
    /// The time after which a connection with unacknowledged bytes is treated as lost (TCP_USER_TIMEOUT).
    static let unansweredSeconds = 15
    /// The default time limit of a call.
    package static let callTime: Duration = .seconds(60)
    /// The time added to a call's limit to get the server's limit. After that, the server stops a statement whose
    /// caller has given up.
    static let serverGraceSeconds = 5.0
    /// The longest time that a writer may be idle within a transaction, because other transactions wait for its
    /// locks.
    static let idleWriterSeconds = 10.0
    /// The same time for a reader. A reader holds no lock that others wait for, but it keeps the server from
    /// removing old rows.
    static let idleReaderSeconds = 300.0
    /// The time limit for sending a request to cancel a statement.
    static let cancelSeconds = 2.0
    /// The time during which a server is queried for the outcome of a COMMIT that got no response. It is longer than
    /// the server keeps a connection that is idle within a transaction.
    static let unheardSeconds = idleWriterSeconds + 2
    /// The maximum number of prepared statements per connection. It is enough for all statements of the store.
    static let preparedStatementsMax = 1024
    /// The number of connections for reads: one each for a dashboard page, a report and the sender, and one to
    /// spare.
    package static let readersMax = 4
    /// The number of retries of a transaction that lost against another one (deadlock, serialization).
    static let retriesMax = 5
    /// The number of bytes of a COPY that are sent together.
    static let copyChunkBytes = 131_072
    /// The waits before a reconnection. The longest is far below the takeover timeout, because a short outage may
    /// leave only half of that.
    static let reconnects = Backoff(first: .milliseconds(100), longest: .seconds(1))
}
