import Foundation
import Model
import Campaigns
import ServiceLifecycle
import Systemd
import UnixSignals
import Daemon
import Sending

/// The daemon as a service of a group: told the files, kept calm with the service manager, stopped in good order.
struct DaemonService: Service {
    /// So many changes in a row, as an editor or a deployment makes them, are one.
    private static let settleTime: Duration = .milliseconds(200)

    let daemon: Scheduler
    let senders: SenderRegistry
    let reloading: Reloading
    let manager: ServiceManager
    let webhooks: WebhookService
    let operations: OperationsService?

    func run() async throws {
        let (snapshots, snapshot) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        let hangUps = await UnixSignalsSequence(trapping: .sighup)
        // Who hears that the daemon is ready may ask for its health.
        if let operations { for await _ in operations.isSettled {} }
        snapshot.yield(reloading.snapshot())
        try manager.send(.ready)
        try await withGracefulShutdownHandler {
            try await work(hangUps, snapshots, snapshot)
        } onGracefulShutdown: {
            // A manager that has gone away meanwhile keeps nobody from stopping.
            try? manager.send(.stopping)
        }
    }

    private func work(
        _ hangUps: UnixSignalsSequence, _ snapshots: AsyncStream<Scheduler.CampaignSnapshot>,
        _ snapshot: AsyncStream<Scheduler.CampaignSnapshot>.Continuation
    ) async throws {
        try await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await _ in hangUps {
                        try manager.sendReloading()
                        reload(snapshot)
                        try manager.send(.ready)
                    }
                }
                group.addTask { try await watch(snapshot) }
                group.addTask {
                    try await manager.notifyWatchdog(while: { daemon.isAlive }, sleep: WallClock.system.sleep)
                }
                group.addTask { try await tellManager() }
                group.addTask { await webhooks.run() }
                // The others go on as long as it does.
                defer { group.cancelAll() }
                try await daemon.run(snapshots)
            }
        }
    }

    private func reload(_ snapshot: AsyncStream<Scheduler.CampaignSnapshot>.Continuation) {
        if reloading.readConfiguration() { senders.reload(pace: reloading.configuration.pace) }
        snapshot.yield(reloading.snapshot())
    }

    private func watch(_ snapshot: AsyncStream<Scheduler.CampaignSnapshot>.Continuation) async throws {
        let watch = FolderWatch(folders: reloading.folders)
        for await _ in watch.changes {
            try await Task.sleep(for: Self.settleTime)
            if reloading.hasChanged() { reload(snapshot) }
        }
    }

    /// A line for `systemctl status`, when it has changed.
    private func tellManager() async throws {
        guard manager.isListening else { return }
        var last = ""
        while !Task.isCancelled {
            let line = daemon.status.line
            if line != last { try manager.send(.status(line)) }
            last = line
            await WallClock.system.sleep(.seconds(5))
        }
    }
}
