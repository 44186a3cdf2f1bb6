import CPostgres
import Foundation
import Model
import Platform

extension PostgresLink {
    /// Tries the hosts, and gives each one its share of the call's remaining time. Throws the most significant error
    /// if no host can be opened.
    static func open(_ hosts: PostgresHosts, wake: EventFD, call: PostgresCall) throws -> PostgresLink {
        let address = hosts.address
        if let interruption = call.interruption { throw call.error(for: interruption, address.description) }
        var failure: PostgresError?
        var left = address.hosts.count
        for number in hosts.order {
            let limit = min(address.connectTimeout, ContinuousClock.now.duration(to: call.deadline) / left)
            left -= 1
            do {
                let link = try open(address, address.hosts[number], wake, call, within: limit)
                hosts.noteOpened(number)
                return link
            } catch let silence as Silence {
                hosts.noteSilent(number)
                failure = failure.map { $0.moreSignificant(than: silence.error) } ?? silence.error
            } catch let error as PostgresError where error.isOfHost {
                failure = failure.map { $0.moreSignificant(than: error) } ?? error
            }
        }
        throw failure ?? PostgresAddressFault.badPort
    }

    /// A host did not respond in its time.
    private struct Silence: Error {
        let error: PostgresError
    }

    private static func open(
        _ address: PostgresAddress, _ host: PostgresAddress.Host, _ wake: EventFD, _ call: PostgresCall,
        within limit: Duration
    ) throws -> PostgresLink {
        let server = address.description
        let parameters = try address.parameters(for: host)
        guard let handle = start(parameters) else {
            throw PostgresError.cannotConnect(server: server, fault: nil, reason: "no memory")
        }
        let link = PostgresLink(handle, server: server, wake: wake, call: call)
        // Until the connection is open, only the text of an error has its code.
        PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
        fanfare_pq_ignore_notices(handle)
        try link.finishOpening(host, within: limit)
        PQsetErrorVerbosity(handle, PQERRORS_DEFAULT)
        let version = Int(PQserverVersion(handle))
        guard version >= oldestVersion else { throw PostgresError.oldServer(server: server, version: version) }
        return link
    }

    private static let oldestVersion = 150_000

    private static func start(_ parameters: [(name: String, value: String)]) -> OpaquePointer? {
        let names = parameters.map { strdup($0.name) }
        let values = parameters.map { strdup($0.value) }
        defer { (names + values).forEach { free($0) } }
        var namePointers = names.map { $0.map { UnsafePointer($0) } }
        var valuePointers = values.map { $0.map { UnsafePointer($0) } }
        namePointers.append(nil)
        valuePointers.append(nil)
        return PQconnectStartParams(namePointers, valuePointers, 0)
    }

    private func finishOpening(_ host: PostgresAddress.Host, within limit: Duration) throws {
        let deadline = ContinuousClock.now + limit
        guard PQstatus(handle) != CONNECTION_BAD else { throw unopened(trouble) }
        // libpq requires that the first wait is for writing.
        var events = POLLOUT
        while true {
            try awaitOpening(host, events, deadline, limit)
            switch PQconnectPoll(handle) {
            case PGRES_POLLING_OK: return
            case PGRES_POLLING_READING: events = POLLIN
            case PGRES_POLLING_WRITING: events = POLLOUT
            default: throw unopened(trouble)
            }
        }
    }

    private func awaitOpening(
        _ host: PostgresAddress.Host, _ events: Int32, _ deadline: ContinuousClock.Instant, _ limit: Duration
    ) throws {
        while true {
            // The host's share of the time ends no later than the call, and is the better reason.
            if let interruption = call.interruption, interruption != .timedOut {
                throw call.error(for: interruption, server)
            }
            guard ContinuousClock.now < deadline else {
                let seconds = max(1, Int((limit / .seconds(1)).rounded()))
                throw Silence(error: unopened("\(host) did not respond within \(seconds) s"))
            }
            if waits(for: events, until: deadline) { return }
        }
    }

    private func unopened(_ message: String) -> PostgresError {
        // `connection to server at "a" failed: FATAL:  28P01: password authentication failed for user "b"`
        let fault = message.firstMatch(of: /: +([0-9A-Z]{5}): +(.*)/).map { match in
            ServerFault(sqlstate: String(match.output.1), message: String(match.output.2), isFatal: true)
        }
        return .cannotConnect(server: server, fault: fault ?? clientFault(message), reason: message)
    }

    /// Returns the fault for one of libpq's own messages: no server is writable, or the server requires a password.
    private func clientFault(_ message: String) -> ServerFault? {
        let codes = [
            "session is read-only": "25006", "hot standby mode": "25006",
            "no password supplied": ServerFault.wrongPassword,
        ]
        return codes.first { message.contains($0.key) }
            .map { ServerFault(sqlstate: $0.value, message: message, isFatal: true) }
    }
}
