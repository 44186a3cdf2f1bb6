import Foundation
import Model

extension PostgresAddress {
    /// How long one host may take to answer.
    var connectTimeout: Duration { .seconds(number(.connectTimeout) ?? PostgresLimits.connectSeconds) }

    /// Debian's collection of authorities, for those who name none.
    private static let systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"

    /// What libpq is told about one of the hosts, by its own names. Holds the password: not to be described.
    func parameters(for host: Host) throws(PostgresAddressFault) -> [(name: String, value: String)] {
        var parameters = [
            "host": host.name, "port": "\(host.port)", "dbname": database, "client_encoding": "UTF8",
            PostgresOption.applicationName.rawValue: "fanfare",
            // Kerberos is tried first otherwise, and takes its time to fail.
            "gssencmode": "disable",
            PostgresOption.sslmode.rawValue: host.isLocal ? "prefer" : "verify-full",
            // A server that vanished is noticed within a minute when idle, and sooner while something is unanswered.
            "keepalives": "1", PostgresOption.keepalivesIdle.rawValue: "30", "keepalives_interval": "10",
            "keepalives_count": "3",
            PostgresOption.tcpUserTimeout.rawValue: "\(PostgresLimits.unansweredSeconds * 1000)",
            PostgresOption.targetSessionAttributes.rawValue: hosts.count > 1 ? "read-write" : "any",
        ]
        for (option, value) in options where option != .prepare && option != .passwordFile {
            parameters[option.rawValue] = value
        }
        // With authorities at hand libpq verifies the certificate also where it was not asked to.
        if parameters["sslmode"]?.hasPrefix("verify") == true, parameters["sslrootcert"] == nil {
            parameters["sslrootcert"] = authorities
        }
        parameters["user"] = user
        parameters["password"] = password
        if password == nil, let file = options[.passwordFile] { parameters["password"] = try Self.password(in: file) }
        return parameters.map { ($0.key, $0.value) }
    }

    /// As libpq finds them, and then those of the system, which libpq 15 does not look at by itself.
    private var authorities: String {
        let environment = ProcessInfo.processInfo.environment
        let own = environment["PGSSLROOTCERT"] ?? (environment["HOME"] ?? "") + "/.postgresql/root.crt"
        return FileManager.default.fileExists(atPath: own) ? own : Self.systemAuthorities
    }

    /// Read at each opening: whoever changes it needs no restart.
    private static func password(in path: String) throws(PostgresAddressFault) -> String {
        do {
            return try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)
        } catch {
            if access(path, R_OK) != 0, errno == EACCES { throw .forbiddenPassword(path: path) }
            let reason = FileManager.default.fileExists(atPath: path) ? "it is no text" : "there is no file"
            throw .unreadablePassword(path: path, reason: reason)
        }
    }
}

/// The numbers a connection works within, each with its reason.
package enum PostgresLimits {
    /// Longer than any server takes that is there at all.
    static let connectSeconds = 10
    /// How long sent bytes may stay unacknowledged before the connection counts as lost (TCP_USER_TIMEOUT).
    static let unansweredSeconds = 15
    /// How long a call may take unless it says otherwise.
    package static let callTime: Duration = .seconds(60)
    /// Given to the server besides, so that it ends by itself what nobody waits for any more.
    static let serverGraceSeconds = 5.0
    /// A sender that is stopped in mid-transaction holds its locks no longer than this: others wait for them.
    static let idleWriterSeconds = 10.0
    /// A reader holds no lock that anybody waits for, but keeps old rows from being cleared away.
    static let idleReaderSeconds = 300.0
    /// How long the request to stop a statement may take to be heard.
    static let cancelSeconds = 2.0
    /// How long a server is asked what became of a COMMIT that it did not answer: longer than it keeps a connection whose
    /// other end is silent in mid-transaction.
    static let unheardSeconds = idleWriterSeconds + 2
    /// Statements kept prepared on one connection: all that the store has, and some of an audience's.
    static let preparedStatementsMax = 1024
    /// A page of the dashboard, a report, whoever sends, and one to spare.
    package static let readersMax = 4
    /// A transaction that lost against another one (deadlock, serialization) is run again this often.
    static let retriesMax = 5
    /// Bytes of a COPY gathered before they are sent.
    static let copyChunkBytes = 131_072
    static let reconnectMilliseconds = 100.0
    /// Far less than the takeover timeout, of which a short outage may leave half.
    static let reconnectMillisecondsMax = 1_000.0
}
