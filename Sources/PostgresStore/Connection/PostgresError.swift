import Model

/// The errors of a connection to the server. `server` is the address without its password.
package enum PostgresError: Error, Hashable, Sendable {
    /// No connection could be opened to any host of the address. The fault and the reason are those of one host; see
    /// ``moreSignificant(than:)``.
    case cannotConnect(server: String, fault: ServerFault?, reason: String)
    /// The server refused a statement.
    case refused(ServerFault, server: String)
    /// The connection was lost before the COMMIT. Nothing of the transaction was kept.
    case connectionLost(server: String, reason: String)
    /// The connection was lost, or the time was up, between the COMMIT and its response. The server that knows the
    /// outcome does not respond, so the transaction may or may not have been committed.
    case outcomeUnknown(server: String, reason: String)
    /// The call exceeded its limit and was stopped. Nothing of the transaction was kept.
    case timedOut(server: String, limit: Duration)
    /// The server is older than the version that the store needs.
    case oldServer(server: String, version: Int)
    /// A column holds something other than the requested type: a bug in this program.
    case unexpectedValue(column: Int, expected: String, found: String)
    /// The connections were closed before or during the call.
    case closed(server: String)
    /// libpq itself failed, for example because memory ran out or a message is too long.
    case failed(server: String, reason: String)
}

extension PostgresError {
    /// The kind of the server's error; `nil` if the error did not come from the server.
    package var kind: ServerFault.Kind? {
        switch self {
        case .refused(let fault, _), .cannotConnect(_, .some(let fault), _): fault.kind
        case .connectionLost: .connectionLost
        default: nil
        }
    }

    /// Whether nothing was kept, and the same transaction should be run again immediately.
    var isLostRace: Bool {
        guard case .refused(let fault, _) = self else { return false }
        return fault.kind == .lostRace || fault.kind == .lostStatement
    }

    /// Whether no server responds, or the server is not ready for writes. The same address may work later, without a
    /// change of the settings.
    package var isUnreachable: Bool {
        switch self {
        case .connectionLost, .timedOut: true
        case .cannotConnect(_, nil, let reason): Self.tlsAdvice(reason) == nil
        case .cannotConnect: isPassing
        default: kind == .readOnly
        }
    }

    /// Whether to retry the same call later, because the error may pass or an operator may free resources. An
    /// unknown outcome is not such an error, because its caller must check the outcome before a retry.
    package var isPassing: Bool {
        switch self {
        case .connectionLost, .timedOut: true
        case .cannotConnect(_, nil, _): true
        case .refused(let fault, _), .cannotConnect(_, .some(let fault), _):
            switch fault.kind {
            case .lostRace, .lockTimeout, .cancelled, .connectionLost, .outOfConnections, .starting, .diskFull,
                .outOfMemory, .systemFault, .readOnly, .lostStatement:
                true
            default: false
            }
        default: false
        }
    }

    /// Whether no connection could be opened.
    var isOfOpening: Bool { if case .cannotConnect = self { true } else { false } }

    /// Whether another host of the address may still be opened.
    var isOfHost: Bool {
        switch self {
        case .cannotConnect, .oldServer: true
        default: false
        }
    }

    /// Whether the server refused one more connection. It may still serve those that are open.
    var isRefusedOpening: Bool {
        guard case .cannotConnect(_, .some(let fault), _) = self else { return false }
        // PgBouncer refuses with a protocol violation, for example at its own limit of connections.
        return [.wrongLogin, .noDatabase, .permission, .outOfConnections].contains(fault.kind)
            || fault.sqlstate == "08P01"
    }

    /// Returns the error to report if two hosts of an address fail, first this one and then `other`. A standby is
    /// always read-only, which explains nothing. An error that a host sent explains more than no response.
    func moreSignificant(than other: PostgresError) -> PostgresError {
        if kind == .readOnly { return other }
        return other.kind == nil || other.kind == .readOnly ? self : other
    }

    /// Whether the store responds, and may accept the same call later.
    package var isBusy: Bool { isPassing && !isUnreachable && !isOfOpening }
}

extension PostgresError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .cannotConnect(let server, let fault, let reason):
            Self.unopened(server, fault?.kind, reason)
        case .refused(let fault, let server): Self.refusal(server, fault)
        case .connectionLost(let server, let reason):
            "the connection to \(server) was lost: \(reason); the last step was not recorded, earlier ones may be; run the same command again"
        case .outcomeUnknown(let server, let reason):
            "the connection to \(server) was lost while a change was being recorded (\(reason)): its outcome is "
                + "unknown; check it, and run the same command again"
        case .timedOut(let server, let limit):
            "a query on \(server) did not finish within \(WrittenDuration.text(limit)), and was cancelled; check what runs there, "
                + "in pg_stat_activity"
        case .oldServer(let server, let version):
            "\(server) is PostgreSQL \(version / 10_000); Fanfare needs version 15 or later"
        case .unexpectedValue(let column, let expected, let found):
            "column \(column) of a result is \(found), not \(expected)"
        case .closed(let server): "the store \(server) is closed"
        case .failed(let server, let reason): "\(server): \(reason)"
        }
    }

    private static func unopened(_ server: String, _ kind: ServerFault.Kind?, _ reason: String) -> String {
        let advice =
            switch kind {
            case .wrongLogin:
                "correct the user and password in the URL, in password_file or in PGPASSFILE"
            case .noDatabase: "create it with `createdb`, or correct the name in the URL"
            case .outOfConnections:
                "close some connections, or raise max_connections there, or the CONNECTION LIMIT of the user or database"
            case .starting, .connectionLost: "try again when it is up"
            case .readOnly: "name the primary, or all hosts of the cluster"
            case .permission: "GRANT CONNECT to this user"
            default: tlsAdvice(reason) ?? "check that the server runs there and that its address is correct"
            }
        return "cannot open \(server): \(reason); \(advice)"
    }

    private static func tlsAdvice(_ reason: String) -> String? {
        if reason.contains("server does not support SSL") {
            return "turn TLS on there (ssl = on), or write ?sslmode=disable on a private network"
        }
        let markers = ["certificate", "private key", "SSL", "TLS"]
        // A connection that was lost during the handshake is no sign of a wrong key or name.
        let cut = ["SSL SYSCALL", "closed unexpectedly"]
        guard markers.contains(where: reason.contains), !cut.contains(where: reason.contains) else { return nil }
        return "name its CA with ?sslrootcert=FILE, and use the host name in its certificate"
    }

    private static func refusal(_ server: String, _ fault: ServerFault) -> String {
        switch fault.kind {
        case .diskFull:
            "no free space on \(server): \(fault); free disk space there first, then run the same command again"
        case .readOnly: "\(server) is read-only: \(fault); name the primary in the store's URL"
        case .permission: "\(server) refuses this user: \(fault); GRANT the user the rights"
        case .outOfMemory:
            "\(server) is out of memory or locks: \(fault); raise max_locks_per_transaction there, or try again"
        default: "\(server) refused: \(fault)"
        }
    }
}
