package import Foundation

/// The number of opens in each hour of the day, by local time.
package struct HourCounts: Hashable, Sendable {
    package static let hoursPerDay = 24

    private var counts = [Int](repeating: 0, count: hoursPerDay)
    package private(set) var total = 0

    package init() {}

    package subscript(hour: Int) -> Int { counts[hour] }

    /// - Parameter hour: 0 to 23.
    package mutating func add(_ count: Int = 1, at hour: Int) {
        counts[hour] += count
        total += count
    }
}

/// Chooses the hour of the day at which a device gets its push, from the hours at which people opened the app.
///
/// Few opens tell little, so they are mixed with the opens of all devices of the app: the app's curve counts like
/// ``curveOpens`` further opens of the device.
package struct BestHour: Hashable, Sendable {
    /// A device with fewer opens gets the app's hour.
    package static let opensMin = 5
    /// The number of opens that the app's curve counts for.
    package static let curveOpens = 5
    /// The time before the run whose opens count.
    package static let history: Duration = .seconds(90 * 86_400)
    /// Opens within the same quarter of an hour count once: a tap on a push also starts the app.
    package static let quarterMs: Int64 = 900_000

    package enum Basis: Hashable, Sendable {
        /// The device's own opens.
        case own
        /// The opens of all devices of the app.
        case app
        /// The app has no opens in these hours, so the first hour is chosen.
        case none
    }

    package struct Choice: Hashable, Sendable {
        /// 0 to 23.
        package var hour: Int
        package var basis: Basis

        package init(hour: Int, basis: Basis) {
            self.hour = hour
            self.basis = basis
        }
    }

    /// The hours at which a push may start.
    package let band: Range<Int>
    /// The opens of the app's devices.
    package let curve: HourCounts
    /// The hour of a device without enough opens.
    package let usual: Choice

    /// Returns `nil` for a band that is empty, or that crosses midnight.
    package init?(band: Range<Int>, curve: HourCounts) {
        guard !band.isEmpty, band.lowerBound >= 0, band.upperBound <= HourCounts.hoursPerDay else { return nil }
        self.band = band
        self.curve = curve
        let best = Self.first(in: band) { curve[$0] }
        usual = Choice(hour: best, basis: curve[best] > 0 ? .app : .none)
    }

    /// Returns the hour with the most opens, mixed with the app's curve. Among equal hours, returns the first.
    package func choice(_ own: HourCounts) -> Choice {
        guard own.total >= Self.opensMin else { return usual }
        // Whole numbers, so that equal hours are exactly equal on every machine.
        let scale = max(1, curve.total)
        let best = Self.first(in: band) { own[$0] * scale + curve[$0] * Self.curveOpens }
        return own[best] > 0 ? Choice(hour: best, basis: .own) : usual
    }

    private static func first(in band: Range<Int>, _ score: (Int) -> Int) -> Int {
        var best = (hour: band.lowerBound, score: score(band.lowerBound))
        for hour in band.dropFirst() {
            let score = score(hour)
            if score > best.score { best = (hour, score) }
        }
        return best.hour
    }
}

/// The local hours of one zone during a span of time. The offsets from UTC are looked up once for each day, because a
/// look-up for each open would take much longer.
package struct LocalHours: Sendable {
    private static let dayMs: Int64 = 86_400_000

    private let zone: TimeZone
    private let firstDay: Int64
    /// The offset in ms at the start of each day by UTC.
    private let offsets: [Int64]

    package init(_ zone: TimeZone, during span: Range<Timestamp>) {
        self.zone = zone
        let first = span.lowerBound.milliseconds.quotientFloor(Self.dayMs)
        let last = max(first, span.upperBound.milliseconds.quotientFloor(Self.dayMs) + 1)
        firstDay = first
        offsets = (first...last).map { Self.offset(zone, atMs: $0 * Self.dayMs) }
    }

    /// Returns the local hour of a moment, 0 to 23.
    package func hour(atMs moment: Int64) -> Int {
        let index = Int(moment.quotientFloor(Self.dayMs) - firstDay)
        let isKnown = offsets.indices.contains(index) && offsets.indices.contains(index + 1)
        // On a day with a clock change, each moment is looked up.
        let offset =
            isKnown && offsets[index] == offsets[index + 1] ? offsets[index] : Self.offset(zone, atMs: moment)
        let local = moment + offset
        return Int((local - local.quotientFloor(Self.dayMs) * Self.dayMs) / 3_600_000)
    }

    private static func offset(_ zone: TimeZone, atMs moment: Int64) -> Int64 {
        Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(moment) / 1000))) * 1000
    }
}
