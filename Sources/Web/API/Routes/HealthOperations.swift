import Campaigns
import Hummingbird
import Model

/// The operation that reports the health of the service.
struct HealthOperations: Sendable {
    let cases: UseCases

    var all: [Operation] {
        [
            Operation(
                method: .get, path: "/health", id: "getHealth", subject: "Service",
                about:
                    "The health of the service: a summary, the checks (worst first), the daemon, and the work that "
                    + "waits. Programs use /healthz and /readyz, which need no token.",
                permission: .read, answers: [.init(.ok, "The health of the service.", .json(HealthResult.self))],
                handle: get)
        ]
    }

    @Sendable private func get(_ request: APIRequest) async throws -> Response {
        try .json(await cases.health.read().seen(by: request.caller))
    }
}

extension HealthResult {
    /// Returns the health as the caller may see it. A caller confined to one app sees only the state of the service
    /// itself.
    func seen(by caller: Caller) -> HealthResult {
        caller.topic == nil ? self : ofTheServiceAlone
    }
}
