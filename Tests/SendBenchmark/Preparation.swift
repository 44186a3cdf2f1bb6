import ArgumentParser
import Foundation
import Model
import SQLiteStore
import Store

/// Makes the store that all rounds send from.
struct Preparation: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make a store with devices, and freeze a run of it.", shouldDisplay: false)

    @Option var store: String
    @Option var devices: Int

    func run() async throws {
        let store = try SQLiteFileStore(path: store)
        let watch = Stopwatch()
        try await importDevices(into: store)
        let importSeconds = watch.seconds
        let importCPU = watch.cpuSeconds
        let freezeSeconds = try await freeze(store)
        let size = try FileManager.default.attributesOfItem(atPath: self.store)[.size] as? Int ?? 0
        Output.show(
            String(
                format:
                    "%d devices imported in %.1f s (CPU %.1f us each), frozen in %.2f s; store %.0f MB, peak %.0f MB",
                devices, importSeconds, importCPU * 1e6 / Double(devices), freezeSeconds, Double(size) / 1e6,
                Usage.peakMegabytes ?? 0))
    }

    private func importDevices(into store: SQLiteFileStore) async throws {
        let locales = ["en-US", "de-DE", "pt-BR", "fr-FR"]
        let now = Timestamp(Date())
        var generator = SystemRandomNumberGenerator()
        var records: [DeviceRecord] = []
        for number in 0..<devices {
            let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }
            guard let token = DeviceToken(bytes: bytes) else { continue }
            var record = DeviceRecord(token: token, environment: .production, topic: BenchmarkCampaign.topic)
            record.installationID = "install-\(number)"
            record.locale = locales[number % locales.count]
            record.appVersion = "4.\(number % 12)"
            record.registeredAt = now
            record.lastSeenAt = now
            records.append(record)
            if records.count == 5000 || number == devices - 1 {
                _ = try await store.importDevices(records, now: now)
                records.removeAll(keepingCapacity: true)
            }
        }
    }

    private func freeze(_ store: SQLiteFileStore) async throws -> Double {
        let now = Timestamp(Date())
        let (run, _) = try await store.createRun(
            try BenchmarkCampaign.definition(plannedAt: now), occurrence: "freeze", now: now, by: "benchmark")
        _ = try await store.claim(run.id, by: "benchmark", now: now)
        let watch = Stopwatch()
        _ = try await store.freeze(run.id, by: "benchmark", now: now) { _ in }
        return watch.seconds
    }
}
