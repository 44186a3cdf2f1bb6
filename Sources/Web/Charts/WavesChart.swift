package import Campaigns
import Foundation
package import Model

/// The deliveries that are planned to start at one moment.
package struct WaveBar: Hashable, Sendable {
    package var startsAt: Timestamp
    package var devices: Int
    /// The time zones, those with most devices first. May be empty.
    package var zones: [String]

    package init(startsAt: Timestamp, devices: Int, zones: [String] = []) {
        self.startsAt = startsAt
        self.devices = devices
        self.zones = zones
    }

    package init(_ wave: PlannedWave) {
        self.init(startsAt: wave.startsAt, devices: wave.devices, zones: wave.zones)
    }

    /// Creates the bar of a plan's wave. Returns `nil` if its time cannot be read.
    package init?(_ wave: PlanResult.WaveEntry) {
        guard let startsAt = Timestamp(shown: wave.startsAt) else { return nil }
        self.init(startsAt: startsAt, devices: wave.devices, zones: wave.zones)
    }
}

extension Chart {
    /// Returns a chart of the planned devices of each wave, by its start.
    package static func waves(_ waves: [WaveBar], id: String = "waves") -> Chart {
        WavesChart(id: id, waves: waves.sorted { $0.startsAt < $1.startsAt }).chart
    }
}

private struct WavesChart {
    /// The room for half a bar at either end of the axis, as a part of the time span. It is at least 30 minutes.
    private static let margin = 0.03
    /// The maximum number of bars with tooltips. If there are more bars, none has a tooltip.
    private static let namedMax = 60

    let id: String
    let waves: [WaveBar]

    var chart: Chart {
        let table = ChartTable(
            columns: ["Starts (UTC)", "devices", "zones"],
            rows: waves.map {
                [
                    "\($0.startsAt.iso8601.prefix(10)) \($0.startsAt.iso8601.dropFirst(11).prefix(5))",
                    $0.devices.grouped, zones($0, atMost: 8),
                ]
            })
        guard let axis else {
            return Chart(
                id: id, title: "Waves", summary: "There are no waves.", height: 0, drawing: "", legend: [], table: table
            )
        }
        let devices = waves.reduce(0.0) { $0 + Double($1.devices) }
        return Chart(
            id: id, title: "Waves",
            summary: "\(waves.count.counted("planned start")) for \(ShortNumber.text(devices)) devices. \(axis.note)",
            height: PlotFrame.drawingHeight, drawing: drawing(axis), legend: [],
            note: "Planned devices by the start of their wave. \(axis.note)", table: table)
    }

    /// The axis, with room before the first wave and after the last, so that their bars are drawn whole.
    private var axis: TimeAxis? {
        guard let first = waves.first?.startsAt, let last = waves.last?.startsAt else { return nil }
        let span = Double((last - first).wholeMilliseconds)
        let room = Duration.milliseconds(max(1_800_000, Int64(span * Self.margin)))
        return TimeAxis(from: first - room, to: last + room)
    }

    private func drawing(_ axis: TimeAxis) -> String {
        let ticks = Ticks.linear(to: Double(waves.map(\.devices).max() ?? 0))
        let top = ticks.last ?? 1
        let marks = ticks.map { (height: $0 / top, label: ShortNumber.text($0)) }
        let width = min(14, max(3, Double(PlotFrame.width) / Double(waves.count) * 0.7))
        let bars = waves.map { wave in
            let height = wave.devices > 0 ? max(1, Double(wave.devices) / top * Double(PlotFrame.height)) : 0
            let left = PlotFrame.x(axis.position(wave.startsAt)) - width / 2
            let shape = "M\(unit(left)) \(PlotFrame.bottom)v-\(unit(height))h\(unit(width))v\(unit(height))z"
            return waves.count > Self.namedMax
                ? shape : "<path class=\"fill accent\" d=\"\(shape)\">\(name(wave))</path>"
        }
        let all = waves.count > Self.namedMax ? "<path class=\"fill accent\" d=\"\(bars.joined())\"/>" : bars.joined()
        return PlotFrame.rows(marks) + all + PlotFrame.columns(axis)
    }

    private func name(_ wave: WaveBar) -> String {
        let time = wave.startsAt.iso8601.dropFirst(11).prefix(5)
        let zones = zones(wave, atMost: 1).cut(toWidth: 40)
        let text = "\(time) UTC: \(wave.devices.counted("device"))" + (zones.isEmpty ? "" : ", \(zones)")
        return "<title>\(text.escapedHTML)</title>"
    }

    private func zones(_ wave: WaveBar, atMost shown: Int) -> String {
        let rest = wave.zones.count - shown
        return wave.zones.prefix(shown).joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
    }
}

extension Timestamp {
    /// Parses a time as results contain it, in ISO 8601 and UTC. Returns `nil` for any other text.
    init?(shown text: String) {
        let whole = text.prefix { $0 != "." && $0 != "Z" }
        guard text.hasSuffix("Z"), let date = try? Date("\(whole)Z", strategy: .iso8601) else { return nil }
        let fraction = text.dropFirst(whole.count).dropLast().dropFirst()
        self.init(milliseconds: Timestamp(date).milliseconds + (Int64(fraction.padded(toThree: "0")) ?? 0))
    }
}

extension Substring {
    fileprivate func padded(toThree digit: Character) -> String {
        String((self + String(repeating: digit, count: 3)).prefix(3))
    }
}
