import Model
import Store

/// Why a device had its turn at its hour, in a run with `best_hour`.
struct HourSummary {
    let run: Run
    let hour: DeviceHistory.Hour
    let device: StoredDevice

    /// A clause such as `sent at 19:00: opens most at 19:00 (7 of 12 opens), allowed 08:00 to 21:00`.
    var text: String? {
        guard let band = run.definition.bestHours,
            let waves = RecipientWaves(run.definition, startedAt: run.startedAt ?? run.createdAt),
            let zone = waves.zone(named: device.record.timeZone)
        else { return nil }
        let turn = zone.wall(at: hour.wave).description.suffix(5)
        let allowed = "allowed hours \(ClockHour.text(band))"
        return "the push was due at \(turn) by the device's clock: \(reason(waves, band)), \(allowed)"
    }

    private func reason(_ waves: RecipientWaves, _ band: Range<Int>) -> String {
        let campaign = run.definition.campaign
        let split = CampaignSplit(campaign)
        guard split.getsOwnHour(split.number(of: device.id, user: device.record.userID)) else {
            return "it is in the half that gets the app's hour"
        }
        guard hour.opens.count >= BestHour.opensMin else {
            return "the app's hour, because the device had \(hour.opens.count.counted("open")) and needs "
                + "\(BestHour.opensMin)"
        }
        var clocks = ZoneClocks(waves)
        let own = clocks.counts(hour.opens, inZone: device.record.timeZone)
        let local = waves.zone(named: device.record.timeZone)?.wall(at: hour.wave)
        let chosen = local.map { Int($0.secondOfDay / 3600) } ?? band.lowerBound
        guard own[chosen] > 0 else {
            return "the app's hour, because the device's opens are spread out or outside the allowed hours"
        }
        let isMost = band.allSatisfy { own[$0] <= own[chosen] }
        return "the device opens the app \(isMost ? "most" : "often") at \(ClockHour.text(chosen)) "
            + "(\(own[chosen]) of \(own.total.counted("open")))"
    }
}
