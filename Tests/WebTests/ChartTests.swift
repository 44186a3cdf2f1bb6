import Campaigns
import Foundation
import FoundationXML
import Model
import Testing
@testable import Web

struct ChartTests {
    static let hostile =
        "<script>alert('x')</script>\" & \u{1}\u{202E} ]]> 日本語 " + String(repeating: "long ", count: 40)
    static let start = Timestamp(milliseconds: 1_795_251_600_000)

    static func slot(
        _ index: Int, accepted: Int = 0, rejected: Int = 0, unknown: Int = 0, retried: Int = 0, p50: Double? = nil,
        p99: Double? = nil
    ) -> TimelineResult.Slot {
        .init(
            startsAt: (start + .seconds(index * 10)).iso8601, accepted: accepted, rejected: rejected, unknown: unknown,
            suppressed: 0, retried: retried, p50Ms: p50, p99Ms: p99)
    }

    static func timeline(_ slots: [TimelineResult.Slot], seconds: Int = 10) -> TimelineResult {
        TimelineResult(run: 1, slotSeconds: seconds, slots: slots)
    }

    /// As many slots as are drawn, with every series busy and no two alike.
    static let full = timeline(
        (0..<360).map { index in
            let wild = SeededNumbers.value(index)
            return slot(
                index, accepted: 40_000 + wild % 90_000, rejected: wild % 4000, unknown: wild % 900,
                retried: wild % 7000,
                p50: 3 + Double(wild % 60), p99: 40 + Double(wild % 4000))
        })

    static let timelines: [(name: String, timeline: TimelineResult)] = [
        ("none", timeline([])), ("one", timeline([slot(0, accepted: 5, p50: 12, p99: 30)])),
        ("full", full), ("zeros", timeline([slot(0), slot(1)])),
        (
            "huge",
            timeline([slot(0, accepted: .max, rejected: .max, p50: 1e300, p99: .infinity), slot(1, accepted: 1)])
        ),
        ("odd", timeline([slot(0, accepted: -5, p50: -1, p99: .nan), slot(5_000_000, accepted: 1)])),
        (
            "unread",
            timeline([
                .init(
                    startsAt: "soon", accepted: 1, rejected: 0, unknown: 0, suppressed: 0, retried: 0, p50Ms: nil,
                    p99Ms: nil)
            ])
        ),
        ("no seconds", timeline([slot(0, accepted: 5), slot(0, accepted: 6)], seconds: 0)),
    ]

    static func counts(
        accepted: Int = 0, rejected: Int = 0, unknown: Int = 0, suppressed: Int = 0, pending: Int = 0, leased: Int = 0
    ) -> CountsResult {
        var counts = DeliveryCounts()
        (counts.accepted, counts.rejected, counts.unknown) = (accepted, rejected, unknown)
        (counts.suppressed, counts.pending, counts.leased) = (suppressed, pending, leased)
        counts.audience = counts.sum
        return CountsResult(counts)
    }

    static func slice(_ name: String, _ counts: CountsResult) throws -> ReportResult.Slice {
        let text = try ResultJSON.text(["counts": counts])
        let name = try #require(String(data: JSONEncoder().encode(name), encoding: .utf8))
        return try ResultJSON.value(ReportResult.Slice.self, from: "{\"name\": \(name), " + text.dropFirst())
    }

    static func others() throws -> [Chart] {
        let reasons = (0..<40).map {
            ReportResult.Reason(Report.Reason(status: $0 % 2 * 400, reason: "\(hostile)\($0)", count: 1 << $0))
        }
        let slices = try (0..<40).map { try slice("\(hostile)\($0)", counts(accepted: $0 * $0 * $0, rejected: $0)) }
        let wave = { (hours: Int) in
            WaveBar(startsAt: start + .seconds(hours * 3600), devices: hours * 100, zones: [hostile, "Europe/Berlin"])
        }
        return [
            .closedSum(counts()), .closedSum(counts(accepted: 1)),
            .closedSum(counts(accepted: 1_000_000, rejected: 1, unknown: 1, suppressed: 1, pending: 1, leased: 1)),
            .closedSum(counts(accepted: .max / 2)),
            .reasons([], of: "suppressed"), .reasons(reasons, of: "suppressed"),
            .reasons([.init(Report.Reason(status: 0, reason: "", count: 0))], of: "unknown"),
            .shares([], by: "locale"), .shares(slices, by: "variant"), .shares([try slice("none", counts())], by: "a"),
            .waves([]), .waves([wave(0)]), .waves((0..<26).map(wave)), .waves((0..<200).map(wave)),
        ]
    }

    static func all() throws -> [Chart] {
        try timelines.flatMap { [Chart.outcomes($0.timeline), .latency($0.timeline)] } + others()
    }

    @Test func `every chart is sound XML without script, style or address, whatever its values and names`() throws {
        for chart in try Self.all() {
            let svg = chart.svg
            let parser = XMLParser(data: Data(svg.utf8))
            #expect(parser.parse(), "\(String(describing: parser.parserError)): \(svg.prefix(600))")
            for word in ["<script", "style", "href", "nan", "inf\"", "url(", "onload"] {
                #expect(!svg.lowercased().contains(word), "\(word) in \(svg.prefix(600))")
            }
            #expect(!chart.html.contains("<script") && !chart.html.contains("style="))
            #expect(!chart.html.contains("\u{1}"))
        }
    }

    @Test func `a chart stays under 8 KB, also with 360 slots`() throws {
        for chart in try Self.all() { #expect(chart.svg.utf8.count <= 8 * 1024, "\(chart.svg.prefix(200))") }
        #expect(Chart.outcomes(Self.full).svg.utf8.count > 4000)
    }

    @Test func `a picture has a title and a description that a reader is led to`() throws {
        for chart in try Self.all() {
            let label = try #require(chart.svg.firstMatch(of: /role="img" aria-labelledby="(\S+) (\S+)"/))
            #expect(chart.svg.contains("<title id=\"\(label.1)\">") && chart.svg.contains("<desc id=\"\(label.2)\">"))
        }
    }

    @Test func `every class of a chart is one of the stylesheet`() throws {
        let known = Set(Asset.style.text.matches(of: /\.([a-z][a-z0-9-]*)/).map { String($0.1) })
        let used = try Set(
            Self.all().flatMap { chart in
                chart.html.matches(of: /class="([^"]+)"/).flatMap { $0.1.split(separator: " ").map(String.init) }
            })
        #expect(used.count > 12)
        #expect(used.subtracting(known) == [])
    }

    @Test func `the table behind holds the numbers of the slots, and leaves out those in which nothing happened`() {
        let html = Chart.outcomes(
            Self.timeline([
                Self.slot(0, accepted: 1234, rejected: 5, unknown: 7, retried: 6), Self.slot(9, accepted: 1),
            ])
        ).html
        #expect(html.contains("<tr><th scope=row>09:00:00<td>1,234<td>6<td>5<td>7<td>0\n"), "\(html)")
        #expect(html.contains("<tr><th scope=row>09:01:30<td>1<td>0<td>0<td>0<td>0\n"))
        #expect(html.matches(of: /<tr><th scope=row>/).count == 2)
        let latency = Chart.latency(Self.timeline([Self.slot(0, p50: 12.34, p99: 250), Self.slot(1)])).html
        #expect(latency.contains("<tr><th scope=row>09:00:00<td>12.3<td>250\n") && !latency.contains("row>09:00:10"))
    }

    @Test func `a gap is drawn as a gap`() throws {
        let gap = Self.timeline([
            Self.slot(0, accepted: 10, p50: 5, p99: 5), Self.slot(9, accepted: 10, p50: 5, p99: 5),
        ])
        // One column of full height, eight of none, one of full height again.
        let outcomes = Chart.outcomes(gap).svg
        #expect(outcomes.contains("d=\"M0 0v170h1v-170h8v170h1v-170z\""), "\(outcomes)")
        let line = try #require(Chart.latency(gap).svg.firstMatch(of: /class="line p50" d="([^"]+)"/))
        #expect(line.1.contains(/^M0 (\d+)h1M9 \1h1$/), "\(line.1)")
    }

    @Test func `what is there at all can be seen, however few it is`() {
        let svg = Chart.outcomes(Self.timeline([Self.slot(0, accepted: 999_999, unknown: 1)])).svg
        #expect(svg.contains("class=\"fill unknown\" d=\"M0 0v1h1v-1z\""), "\(svg)")
        #expect(!svg.contains("fill rejected"))
        let sum = Chart.closedSum(Self.counts(accepted: 1_000_000, unknown: 1)).svg
        #expect(sum.contains("<rect class=\"fill unknown\" x=\"636\" width=\"2.5\""), "\(sum)")
    }

    @Test func `slots too many to draw are put together, and none of their numbers is lost`() {
        let html = Chart.outcomes(Self.timeline((0..<1000).map { Self.slot($0, accepted: 3) })).html
        #expect(html.contains("3,000 accepted"))
        #expect(html.contains("Deliveries in each 30s"), "\(html.prefix(900))")
        #expect(html.matches(of: /<td>9<td>0/).count == 333)
        let latency = { (count: Int) in
            Chart.latency(Self.timeline((0..<count).map { Self.slot($0, p50: 3, p99: 9) })).html
        }
        #expect(latency(1000).contains("Each is the largest value of its intervals of 10s."))
        #expect(!latency(100).contains("the largest value"))
    }
}

/// Numbers that look random and are the same every time.
enum SeededNumbers {
    static func value(_ index: Int) -> Int {
        var generator = SeededGenerator(seed: UInt64(index))
        return Int(generator.next() >> 33)
    }
}
