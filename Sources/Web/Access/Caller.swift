import Campaigns
import Model

/// An authenticated caller, and what it may do.
struct Caller: Hashable, Sendable {
    /// The way in which the caller's name was proven.
    enum Proof: Hashable, Sendable {
        /// An access token in the request itself.
        case token
        /// A session that began with a token or a link.
        case session
        /// A header from a proxy at a trusted address.
        case proxy
        /// The secret of an installation, which may only report for itself.
        case installation(ReportingInstallation)
    }

    var name: String
    var role: AccessRole
    /// The topic of the app that the caller is confined to. `nil` means all apps.
    var topic: String? = nil
    var proof: Proof

    /// The actor that the audit log records.
    var actor: Actor {
        var actor =
            switch proof {
            case .token: Actor("\(name) (token)", origin: .api)
            case .session: Actor("\(name) (signed in)", origin: .page)
            case .proxy: Actor("\(name) (proxy)", origin: .page)
            case .installation: Actor("\(name) (installation)", origin: .api)
            }
        actor.signedInAs = "\(proof == .proxy ? "proxy" : "token"):\(name)"
        return actor
    }

    /// Throws unless the caller has the same rights as at the start of the request. A body may arrive for hours, so
    /// each reader of a body asks at its end.
    ///
    /// - Parameter isStill: see ``Authenticator/isStill(_:_:_:)``.
    func requireStill(_ isStill: () async throws -> Bool) async throws {
        guard try await isStill() else {
            throw Problem.forbidden(
                "the access of \(name) was changed or revoked while the request was being sent; send it again")
        }
    }

    func require(_ permission: AccessRole.Permission) throws {
        if case .installation = proof, permission != .report {
            throw Problem.forbidden("an installation's secret is only for POST /api/v1/events; use an access token")
        }
        guard role.may(permission) else {
            let roles = AccessRole.allCases.filter { $0.may(permission) }.map(\.rawValue)
            throw Problem.forbidden(
                "\(name) has the role \(role.rawValue), and this needs \(roles.formatted); ask an admin for a token "
                    + "with that role"
            )
        }
    }

    /// Throws "not found" for a caller that is confined to another app, so that the caller does not learn what exists
    /// there.
    ///
    /// - Parameter topic: the topic of the app, or a topic of its devices such as `com.example.app.voip` of
    ///   `com.example.app`.
    func requireTopic(_ topic: String, orNotFound what: @autoclosure () -> String) throws {
        guard sees(topic) else { throw Problem.notFound(what()) }
    }

    /// Throws for a caller that is confined to one app.
    ///
    /// - Parameter what: the subject of the message, such as `tokens`.
    func requireAllApps(for what: String) throws {
        guard let topic else { return }
        throw Problem.forbidden("\(name) is valid only for \(topic), and \(what) belong to all apps")
    }

    func sees(_ topic: String) -> Bool {
        self.topic.map { topic.isTopic(of: $0) } ?? true
    }
}

extension UseCases {
    /// Returns a run by its number. Throws "not found" for a caller that is confined to another app.
    func run(_ number: Int64, for caller: Caller) async throws -> Run {
        let run = try await run("\(number)")
        try caller.requireTopic(
            run.definition.campaign.topic, orNotFound: "no run \(number) in the store; `fanfare status` lists the runs")
        return run
    }
}

extension [String] {
    /// Returns `a`, `a or b`, or `a, b or c`.
    fileprivate var formatted: String {
        guard let last, count > 1 else { return first ?? "no account" }
        return dropLast().joined(separator: ", ") + " or " + last
    }
}
