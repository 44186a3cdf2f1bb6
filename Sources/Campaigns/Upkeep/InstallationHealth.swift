import Model
import Platform
import Store

/// The findings of ``DiagnoseInstallation`` about a running service, for pages that show them on every request.
///
/// The checks run in the background, at most once a minute, and a page shows the last findings. So a slow check, such
/// as a key on a file system that does not respond, delays a page for at most a second. Findings older than two minutes
/// are not shown, since the page would call them current.
package struct InstallationHealth: Sendable {
    private static let checkEvery: Duration = .seconds(60)
    private static let overdueMax: Duration = .seconds(60)
    private static let patience: Duration = .seconds(1)

    private enum Key: Hashable, Sendable {
        case installation
    }

    private let store: any AccessLog
    private let clock: WallClock
    private let diagnosis: @Sendable () -> DiagnoseInstallation
    private let findings: BackgroundCountCache<Key, [Finding]>

    /// - Parameter diagnosis: the checks, at the time of the call.
    init(store: any AccessLog, clock: WallClock, diagnosis: @escaping @Sendable () -> DiagnoseInstallation) {
        self.store = store
        self.clock = clock
        self.diagnosis = diagnosis
        // Its own queue: a count of many devices delays no check.
        findings = BackgroundCountCache(
            CountQueue(), clock: clock, every: Self.checkEvery, overdueMax: Self.overdueMax)
    }

    /// Returns the last findings. Starts the checks in the background if they are due, and waits up to a second for
    /// them if there are no findings to show.
    package func latest() async -> [Finding] {
        do {
            let seen = findings.countEnded.version
            if let known = try await known() { return known }
            await findings.countEnded.wait(after: seen, atMost: Self.patience, clock: clock)
            return try await known()
                ?? [Self.unknown("the check has not finished yet; reload the page in a few seconds")]
        } catch {
            return Finding.sentences(of: error).map(Self.unknown)
        }
    }

    private func known() async throws -> [Finding]? {
        let counted = try await findings.latest(.installation) { [store, diagnosis] in
            let tokens = try? await store.accessTokens()
            return await BlockingThread.run("installation") { diagnosis().findings(tokens: tokens) }
        }
        return counted?.figure
    }

    private static func unknown(_ reason: String) -> Finding {
        .skipped(.configuration, "could not check configuration, keys and rights, because \(reason)")
    }
}
