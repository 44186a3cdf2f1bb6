import ArgumentParser
import Foundation
import Model
import Store

/// The run a person means.
enum RunLookup {
    static let help: ArgumentHelp = "The run's number, a campaign's name for its latest run, or campaign/occurrence."

    /// - Parameter text: `7`, `new-podcast` or `new-podcast/episode-42`.
    static func run(_ text: String, in store: any AllRoles) async throws -> Run {
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

/// Runs that a crash left behind: what they had in flight is put in order before anything is said about them.
enum Abandoned {
    static func recover(in store: any AllRoles) async throws {
        for found in try await store.recoverAbandoned(now: Timestamp(Date())) {
            let counts = found.recovered
            Console.note(
                "run \(found.run) was left by \(ProcessName.shown(found.owner)), which has ended: "
                    + "\(counts.resent.grouped) deliveries in flight will be sent once more, "
                    + "\(counts.unknown.grouped) are unknown")
        }
    }
}
