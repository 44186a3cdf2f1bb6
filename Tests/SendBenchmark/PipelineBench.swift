import APNs
import Engine
import Foundation
import Logging
import Model
import Storage

/// A broadcast from SQLite rows to recorded outcomes, the way `fanfare run` does it.
final class PipelineBench {
    private static let topic = "com.example.wendercast"

    private let target: BenchmarkTarget
    private let lanes: Int
    private let devices: Int
    private let store: Store
    private var importSeconds = 0.0
    private var freezeSeconds = 0.0

    init(target: BenchmarkTarget, lanes: Int, devices: Int) async throws {
        self.target = target
        self.lanes = lanes
        self.devices = devices
        store = try Store(path: target.directory + "/bench.sqlite")
        try await importDevices()
        try await measureFreeze()
    }

    var preparation: String {
        String(
            format: "import of %d devices %.1f s, freeze %.2f s, store %.0f MB", devices, importSeconds, freezeSeconds,
            Double(
                (try? FileManager.default.attributesOfItem(atPath: target.directory + "/bench.sqlite")[.size] as? Int)
                    ?? 0)
                / 1e6)
    }

    func close() {
        try? FileManager.default.removeItem(atPath: target.directory + "/bench.sqlite")
    }

    func run(round: Int) async throws -> BenchmarkResult {
        let now = Timestamp(Date())
        let sender = Pipeline.Sender(
            transport: try target.transport(), endpoints: [.production: target.endpoint], lanesPerEnvironment: lanes,
            silentBudget: .init())
        let pipeline = Pipeline(
            store: store, sender: sender,
            clock: EngineClock(now: { Timestamp(Date()) }, sleep: { try? await Task.sleep(for: $0) }),
            chance: { 0.5 }, logger: Logger(label: "bench"))
        let (run, _) = try await store.createRun(
            try definition(now), occurrence: "round-\(round)-\(now.milliseconds)", now: now, by: "benchmark")
        let watch = Stopwatch()
        nonisolated(unsafe) var latencies: LatencyRecorder?
        _ = try await pipeline.carryOut(run, owner: "benchmark") { latencies = $1 }
        let seconds = watch.seconds
        let cpuSeconds = watch.cpuSeconds
        let report = try await store.report(run.id)
        let check = try await store.check(run.id)
        guard check.problems.isEmpty, report.counts.audience == devices else {
            throw Problem.wrongAccount(check.problems)
        }
        return BenchmarkResult(
            seconds: seconds, cpuSeconds: cpuSeconds, p50Microseconds: latencies?.microseconds(atPercentile: 50) ?? 0,
            p99Microseconds: latencies?.microseconds(atPercentile: 99) ?? 0, peakMegabytes: Stopwatch.peakMegabytes,
            failures: devices - report.counts.accepted)
    }

    private enum Problem: Error {
        case wrongAccount([String])
        case badLocale
    }

    private func importDevices() async throws {
        let watch = Stopwatch()
        let locales = ["en-US", "de-DE", "pt-BR", "fr-FR"]
        let now = Timestamp(Date())
        var generator = SystemRandomNumberGenerator()
        var records: [DeviceRecord] = []
        for number in 0..<devices {
            let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }
            guard let token = DeviceToken(bytes: bytes) else { continue }
            var record = DeviceRecord(token: token, environment: .production, topic: Self.topic)
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
        importSeconds = watch.seconds
    }

    private func measureFreeze() async throws {
        let now = Timestamp(Date())
        let (run, _) = try await store.createRun(
            try definition(now), occurrence: "freeze-\(now.milliseconds)", now: now, by: "benchmark")
        let watch = Stopwatch()
        _ = try await store.freeze(run.id, now: now) { _ in }
        freezeSeconds = watch.seconds
    }

    private func definition(_ now: Timestamp) throws -> RunDefinition {
        var campaign = Campaign(name: "bench", topic: Self.topic, pushType: .alert, template: "bench")
        campaign.expiresAfter = .seconds(4 * 3600)
        var template = Template(name: "bench")
        let texts = [
            ("en", "New on {{show}}", "{{title}} is out. Listen now."), ("de", "Neu bei {{show}}", "{{title}} ist da."),
            ("pt-BR", "Novidade em {{show}}", "{{title}} já está no ar."), ("fr", "Sur {{show}}", "{{title}} est là."),
        ]
        template.alert = .localized(
            try texts.map { locale, title, body in
                guard let tag = LocaleTag(locale) else { throw Problem.badLocale }
                return .init(
                    locale: tag, title: try TemplateText(parsing: title), subtitle: nil,
                    body: try TemplateText(parsing: body))
            })
        return RunDefinition(
            campaign: campaign, template: template, variables: ["show": "WenderCast", "title": "Episode 42"],
            plannedAt: now)
    }
}
