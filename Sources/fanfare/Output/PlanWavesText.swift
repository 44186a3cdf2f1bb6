import Model
import Campaigns

/// When a plan's pushes leave, and how long that takes.
struct PlanWavesText {
    private static let wavesShown = 12

    let plan: Plan

    func add(to page: inout Page) {
        guard let wall = plan.definition.wall else {
            for wave in plan.waves { page.row("Start", words(wave), lateness(wave)) }
            return
        }
        page.row(
            "Start",
            "\(wall) by each device's clock, in \(plan.waves.count == 1 ? "1 wave" : "\(plan.waves.count) waves"):")
        for wave in plan.waves.prefix(Self.wavesShown) {
            page.row("", "\(wave.startsAt.shown)  \(wave.devices.devices)\(zones(wave))\(end(wave))", lateness(wave))
        }
        let rest = plan.waves.dropFirst(Self.wavesShown)
        if let last = rest.last {
            let devices = rest.reduce(0) { $0 + $1.devices }
            page.row("", "and \(rest.count) more with \(devices.devices), the last at \(last.startsAt.shown)")
        }
    }

    private func words(_ wave: Wave) -> String {
        let start = (wave.startsAt <= plan.madeAt ? "now, " : "") + wave.startsAt.shown
        guard let rate = wave.rate, wave.endsAt != nil, wave.devices > 0 else {
            return start + ", as fast as APNs takes it"
        }
        let speed =
            switch wave.basis {
            case .lastRun: "at the last run's \(Int(rate).grouped)/s"
            case .pace, nil:
                "\(Self.rate(rate))/s" + (wave.ramp.map { " after a ramp of \(WrittenDuration.text($0))" } ?? "")
            }
        return "\(start), \(speed)\(end(wave))"
    }

    private func zones(_ wave: Wave) -> String {
        guard let first = wave.zones.first else { return "" }
        return " (\(first)\(wave.zones.count > 1 ? " and \(wave.zones.count - 1) more" : ""))"
    }

    private func end(_ wave: Wave) -> String {
        guard let endsAt = wave.endsAt else { return "" }
        let took = Duration.seconds(Int64((endsAt - wave.startsAt).inSeconds.rounded(.up)))
        return ": ends about \(WrittenDuration.text(took)) later, \((wave.startsAt + took).shown)"
    }

    private func lateness(_ wave: Wave) -> String {
        guard wave.lateDevices > 0, let life = plan.definition.campaign.expiresAfter else { return "" }
        return "\(wave.lateDevices.devices) would have their turn later than expires_after "
            + "(\(WrittenDuration.text(life))) and get nothing: expired"
    }

    private static func rate(_ rate: Double) -> String {
        rate >= 10 || rate == rate.rounded() ? Int(rate).grouped : "\(rate)"
    }
}
