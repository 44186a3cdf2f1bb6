import Model
import Store

/// The findings of ``DiagnoseInstallation`` about a running service, for pages that show them on every request.
///
/// The checks run in the background, at most once a minute, and a page shows the last findings. So a slow check, such
/// as a key on a file system that does not respond, delays no page.
package struct InstallationHealth: Sendable {
    private static let checkEvery: Duration = .seconds(60)

    private enum Key: Hashable, Sendable {
        case installation
    }

    private let store: any AccessLog
    private let diagnosis: @Sendable () -> DiagnoseInstallation
    private let findings: BackgroundCountCache<Key, [Finding]>

    /// - Parameter diagnosis: the checks, at the time of the call.
    init(store: any AccessLog, clock: WallClock, diagnosis: @escaping @Sendable () -> DiagnoseInstallation) {
        self.store = store
        self.diagnosis = diagnosis
        // Its own queue: a count of many devices delays no check.
        findings = BackgroundCountCache(CountQueue(), clock: clock, every: Self.checkEvery)
    }

    /// Returns the last findings. Starts the checks in the background if they are due.
    package func latest() async -> [Finding] {
        do {
            let counted = try await findings.latest(.installation) { [store, diagnosis] in
                let tokens = try? await store.accessTokens()
                return await BlockingThread.run("installation") { diagnosis().findings(tokens: tokens) }
            }
            return counted?.figure ?? [Self.unknown("the check has not finished yet; reload the page in a few seconds")]
        } catch {
            return Finding.sentences(of: error).map(Self.unknown)
        }
    }

    private static func unknown(_ reason: String) -> Finding {
        .skipped(.configuration, "could not check configuration, keys and rights, because \(reason)")
    }
}
