import ArgumentParser
import Campaigns
import Foundation
import Model
import Platform
import Senders
import Sending
import Systemd
import Web

/// The gauges of this process, its credentials, and the files beside the store.
enum ServiceGauges {
    static func all(_ senders: SenderFolder) -> [GaugeFamily] {
        all(
            verifiedAt: LastGoodVerify.moment(senders),
            folder: URL(fileURLWithPath: senders.path).deletingLastPathComponent().path)
    }

    /// - Parameter folder: the folder that contains the senders' folder. A store in a file is there too.
    static func all(verifiedAt: Timestamp?, folder: String) -> [GaugeFamily] {
        let version = MetricSample([MetricLabel("version", Fanfare.configuration.version)], 1)
        let verified = verifiedAt.map { Double($0.milliseconds) / 1000 } ?? 0
        return [
            GaugeFamily("fanfare_build_info", "1, by the version of this program.", [version]),
            GaugeFamily(
                "fanfare_last_good_verify_timestamp_seconds",
                "When `fanfare verify` last passed every check on this machine; 0 if never.", verified),
        ] + disk(folder) + process()
    }

    static func credentials(_ states: [CredentialWatch.State]) -> [GaugeFamily] {
        func labels(_ state: CredentialWatch.State) -> [MetricLabel] {
            [MetricLabel("environment", state.environment.rawValue), MetricLabel("topic", state.topic)]
        }
        return [
            GaugeFamily(
                "fanfare_credential_usable", "1 if the app's key or certificate can be loaded; else 0.",
                states.map { MetricSample(labels($0), $0.problem == nil ? 1 : 0) }),
            GaugeFamily(
                "fanfare_certificate_expiry_timestamp_seconds", "When an app's certificate expires; absent for keys.",
                states.compactMap { state in
                    state.expiresAt.map { MetricSample(labels(state), Double($0.milliseconds) / 1000) }
                }),
        ]
    }

    /// Returns the free space of the folder's file system.
    private static func disk(_ folder: String) -> [GaugeFamily] {
        guard let free = DiskSpace(ofFolder: folder)?.freeBytes else { return [] }
        return [
            GaugeFamily("fanfare_disk_free_bytes", "Free space beside the store, or beside the journals.", Double(free))
        ]
    }

    /// Returns process metrics under the names that all Prometheus clients use.
    private static func process() -> [GaugeFamily] {
        let process = OwnProcess.now
        return [
            GaugeFamily(
                "process_cpu_seconds_total", "The processor time that the process has used.", process.cpuSeconds,
                isCounter: true),
            GaugeFamily("process_virtual_memory_bytes", "Size of the address space.", process.virtualBytes),
            GaugeFamily("process_resident_memory_bytes", "Memory that the process has in use.", process.residentBytes),
            GaugeFamily("process_open_fds", "Open file descriptors.", process.openFiles),
            GaugeFamily("process_max_fds", "The maximum number of open file descriptors.", process.openFilesMax),
            GaugeFamily("process_start_time_seconds", "The start time of the process.", process.startedAt),
        ]
    }
}
