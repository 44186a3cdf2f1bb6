import Foundation
import Model

extension PostgresAddress {
    /// How long one host may take to answer.
    var connectTimeout: Duration { .seconds(number(.connectTimeout) ?? PostgresLimits.connectSeconds) }

    /// Debian's collection of certificate authorities, for users who name none.
    private static let systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"

    /// Returns libpq's parameters for one of the hosts, by libpq's names. They contain the password, so never print
    /// them.
    func parameters(for host: Host) throws(PostgresAddressFault) -> [(name: String, value: String)] {
        var parameters = [
            "host": host.name, "port": "\(host.port)", "dbname": database, "client_encoding": "UTF8",
            PostgresOption.applicationName.rawValue: "fanfare",
            // Otherwise libpq tries Kerberos first, which takes its time to fail.
            "gssencmode": "disable",
            PostgresOption.sslmode.rawValue: host.isLocal ? "prefer" : "verify-full",
            // A server that vanished is noticed within a minute on an idle connection, and sooner while an answer is
            // outstanding.
            "keepalives": "1", PostgresOption.keepalivesIdle.rawValue: "30", "keepalives_interval": "10",
            "keepalives_count": "3",
            PostgresOption.tcpUserTimeout.rawValue: "\(PostgresLimits.unansweredSeconds * 1000)",
            PostgresOption.targetSessionAttributes.rawValue: hosts.count > 1 ? "read-write" : "any",
        ]
        for (option, value) in options where option != .prepare && option != .passwordFile {
            parameters[option.rawValue] = value
        }
        // Only for these modes: with a file of authorities, libpq verifies the certificate even if it was not asked to.
        if parameters["sslmode"]?.hasPrefix("verify") == true, parameters["sslrootcert"] == nil {
            parameters["sslrootcert"] = authorities
        }
        parameters["user"] = user
        parameters["password"] = password
        if password == nil, let file = options[.passwordFile] { parameters["password"] = try Self.password(in: file) }
        return parameters.map { ($0.key, $0.value) }
    }

    /// The file where libpq finds its authorities, or else the system's, which libpq 15 does not use automatically.
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
    /// Longer than any running server takes.
    static let connectSeconds = 10
    /// How long sent bytes may stay unacknowledged before the connection counts as lost (TCP_USER_TIMEOUT).
    static let unansweredSeconds = 15
    /// How long a call may take unless it says otherwise.
    package static let callTime: Duration = .seconds(60)
    /// The time that the server gets on top of a call's limit. After that it stops statements whose caller has given
    /// up.
    static let serverGraceSeconds = 5.0
    /// A writer that stops in mid-transaction holds its locks no longer than this, since others wait for them.
    static let idleWriterSeconds = 10.0
    /// A reader holds no lock that others wait for, but it keeps the server from removing old rows.
    static let idleReaderSeconds = 300.0
    /// How long the delivery of a request to cancel a statement may take.
    static let cancelSeconds = 2.0
    /// How long a server is asked for the outcome of a COMMIT that it did not answer. This is longer than the server
    /// keeps a connection whose client is silent in mid-transaction.
    static let unheardSeconds = idleWriterSeconds + 2
    /// Statements kept prepared on one connection: all of the store's, and some of an audience's.
    static let preparedStatementsMax = 1024
    /// One each for a dashboard page, a report and the sender, and one to spare.
    package static let readersMax = 4
    /// The number of retries of a transaction that lost against another one (deadlock, serialization).
    static let retriesMax = 5
    /// Bytes of a COPY gathered before they are sent.
    static let copyChunkBytes = 131_072
    static let reconnectMilliseconds = 100.0
    /// Far less than the takeover timeout, of which a short outage may leave only half.
    static let reconnectMillisecondsMax = 1_000.0
}
