package import Model
package import Store

/// The run a person means.
package enum RunLookup {
    /// - Parameter text: `7`, `new-podcast` or `new-podcast/episode-42`.
    package static func run(_ text: String, in store: any RunLog) async throws -> Run {
        if let id = Int64(text) {
            guard let run = try await store.run(id) else {
                throw Failure(.notFound, "no run \(id) in the store; `fanfare status` lists them")
            }
            return run
        }
        if let run = try await store.latestRun(campaign: text) { return run }
        let parts = text.split(separator: "/", maxSplits: 1).map(String.init)
        if parts.count == 2 {
            if let run = try await store.run(campaign: parts[0], occurrence: parts[1]) { return run }
            throw Failure(
                .notFound,
                "no run of \(parts[0]) for the occurrence \(parts[1]) in the store; `fanfare status` lists them")
        }
        throw Failure(
            .notFound, "no run of a campaign \"\(text)\" in the store; start one with `fanfare run \(text)`")
    }
}
