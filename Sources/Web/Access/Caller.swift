import Campaigns
import Model

/// Who asks, as far as that is proven, and what they may do.
struct Caller: Hashable, Sendable {
    /// What the name is known by.
    enum Proof: Hashable, Sendable {
        /// An access token in the request itself.
        case token
        /// A session that began with a token or a link.
        case session
        /// A proxy at an address that is trusted says so.
        case proxy
    }

    var name: String
    var role: AccessRole
    /// Of the app they are confined to; nil: all.
    var topic: String? = nil
    var proof: Proof

    /// For the audit.
    var actor: Actor {
        var actor =
            switch proof {
            case .token: Actor("\(name) (token)", origin: .api)
            case .session: Actor("\(name) (signed in)", origin: .page)
            case .proxy: Actor("\(name) (proxy)", origin: .page)
            }
        actor.signedInAs = "\(proof == .proxy ? "proxy" : "token"):\(name)"
        return actor
    }

    func require(_ permission: AccessRole.Permission) throws {
        guard role.may(permission) else {
            let roles = AccessRole.allCases.filter { $0.may(permission) }.map(\.rawValue)
            throw Problem.forbidden(
                "\(name) is \(role.rawValue), and this is for \(roles.formatted); ask an admin for a token with that role"
            )
        }
    }

    /// Throws as if there were nothing: whoever is confined to another app does not learn what there is.
    ///
    /// - Parameter topic: of the app, or of its devices: `com.example.app.voip` belongs to `com.example.app`.
    func requireTopic(_ topic: String, orNotFound what: @autoclosure () -> String) throws {
        guard sees(topic) else { throw Problem.notFound(what()) }
    }

    /// Throws for whoever is confined to one app.
    ///
    /// - Parameter what: `tokens`.
    func requireAllApps(for what: String) throws {
        guard let topic else { return }
        throw Problem.forbidden("\(name) is good for \(topic) alone, and \(what) are of all apps")
    }

    func sees(_ topic: String) -> Bool {
        self.topic.map { topic.isTopic(of: $0) } ?? true
    }
}

extension UseCases {
    /// A run by its number, as if there were none for whoever is confined to another app.
    func run(_ number: Int64, for caller: Caller) async throws -> Run {
        let run = try await run("\(number)")
        try caller.requireTopic(
            run.definition.campaign.topic, orNotFound: "no run \(number) in the store; `fanfare status` lists them")
        return run
    }
}

extension [String] {
    /// `a`, `a or b`, `a, b or c`.
    fileprivate var formatted: String {
        guard let last, count > 1 else { return first ?? "nobody" }
        return dropLast().joined(separator: ", ") + " or " + last
    }
}
