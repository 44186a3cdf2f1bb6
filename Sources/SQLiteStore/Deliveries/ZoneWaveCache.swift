import Store
import Model

/// ``RecipientWaves``, asked once for each zone that comes up.
struct ZoneWaveCache {
    /// Above so many, devices report anything but zones, and nothing is kept.
    private static let knownMax = 5000

    private let waves: RecipientWaves
    private var known: [String?: RecipientWaves.Turn] = [:]

    init(_ waves: RecipientWaves) {
        self.waves = waves
    }

    mutating func turn(inZone zone: String?) -> RecipientWaves.Turn {
        if let turn = known[zone] { return turn }
        let turn = waves.turn(inZone: zone)
        if known.count < Self.knownMax { known[zone] = turn }
        return turn
    }
}
