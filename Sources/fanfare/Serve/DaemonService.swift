import Engine
import Foundation
import Model
import ServiceLifecycle
import Systemd
import UnixSignals

/// The daemon as a service of a group: told the files, kept calm with the service manager, stopped in good order.
struct DaemonService: Service {
    /// So many changes in a row, as an editor or a deployment makes them, are one.
    private static let settleTime: Duration = .milliseconds(200)

    let daemon: Daemon
    let fleet: Fleet
    let reloading: Reloading
    let manager: ServiceManager
    let webhooks: WebhookService
    let operations: OperationsService?

    func run() async throws {
        let (supplies, supply) = AsyncStream.makeStream(of: Daemon.Supply.self)
        let hangUps = await UnixSignalsSequence(trapping: .sighup)
        // Who hears that the daemon is ready may ask for its health.
        if let operations { for await _ in operations.isSettled {} }
        supply.yield(reloading.supply())
        try manager.send(.ready)
        try await withGracefulShutdownHandler {
            try await work(hangUps, supplies, supply)
        } onGracefulShutdown: {
            // A manager that has gone away meanwhile keeps nobody from stopping.
            try? manager.send(.stopping)
        }
    }

    private func work(
        _ hangUps: UnixSignalsSequence, _ supplies: AsyncStream<Daemon.Supply>,
        _ supply: AsyncStream<Daemon.Supply>.Continuation
    ) async throws {
        try await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await _ in hangUps {
                        try manager.sendReloading()
                        reload(supply)
                        try manager.send(.ready)
                    }
                }
                group.addTask { try await watch(supply) }
                group.addTask {
                    try await manager.notifyWatchdog(while: { daemon.isAlive }, sleep: EngineClock.system.sleep)
                }
                group.addTask { try await tellManager() }
                group.addTask { await webhooks.run() }
                // The others go on as long as it does.
                defer { group.cancelAll() }
                try await daemon.run(supplies)
            }
        }
    }

    private func reload(_ supply: AsyncStream<Daemon.Supply>.Continuation) {
        if reloading.readConfiguration() { fleet.reload(pace: reloading.configuration.pace) }
        supply.yield(reloading.supply())
    }

    private func watch(_ supply: AsyncStream<Daemon.Supply>.Continuation) async throws {
        let watch = FolderWatch(folders: reloading.folders)
        for await _ in watch.changes {
            try await Task.sleep(for: Self.settleTime)
            if reloading.hasChanged() { reload(supply) }
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
            await EngineClock.system.sleep(.seconds(5))
        }
    }
}
