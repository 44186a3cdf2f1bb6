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
                    "How the service is: one sentence, what was looked at with the worst first, the daemon, and what waits. "
                    + "For machines there are /healthz and /readyz, which ask for no token.",
                permission: .read, answers: [.init(.ok, "How it is, well or not.", .json(HealthResult.self))],
                handle: get)
        ]
    }

    @Sendable private func get(_ request: APIRequest) async throws -> Response {
        try .json(await cases.health.read().seen(by: request.caller))
    }
}

extension HealthResult {
    /// Returns the health as the caller may see it. A caller confined to one app sees nothing of other apps.
    func seen(by caller: Caller) -> HealthResult {
        caller.topic == nil ? self : ofTheServiceAlone
    }
}
