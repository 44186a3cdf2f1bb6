import GRDB
import Store
import Model

/// Counts the devices of an audience in one pass, in order of id; grouping a million rows in SQL would sort them first.
struct ReachCount {
    private struct Group: Hashable {
        var environment: Int64
        var locale: Int
        var variant: Int?
    }

    private let pushType: PushType
    private let split: CampaignSplit?
    private let variants: Int
    private var turns: ZoneWaveCache?
    private var locales = TextCodes()
    private var zones = TextCodes()
    private var groups: [Group: Int] = [:]
    private var byZone: [Int] = []
    private var suppressed: [SuppressionReason: Int] = [:]
    private var overBudget = 0

    /// - Parameter campaign: nil: without holdout and variants.
    init(_ pushType: PushType, campaign: Campaign?, waves: RecipientWaves? = nil) {
        self.pushType = pushType
        let split = campaign.map(CampaignSplit.init)
        self.split = split?.isTrivial == true ? nil : split
        variants = campaign?.variants.count ?? 0
        turns = waves.map(ZoneWaveCache.init)
    }

    mutating func count(_ selection: AudienceSelection, _ db: Database, budget: SilentSpending?) throws {
        let rows = try RowStatement(
            db,
            """
            SELECT device.id, device.environment, device.status, device.alerts_allowed, device.locale, device.time_zone
            FROM device
            WHERE \(selection.sql)
            ORDER BY device.id
            """, arguments: StatementArguments(selection.arguments))
        defer { rows.reset() }
        while try rows.step() {
            let device = rows.int64(0)
            if let reason = reason(rows, device) {
                suppressed[reason, default: 0] += 1
                continue
            }
            let group = Group(
                environment: rows.int64(1), locale: locales.code(rows, 4), variant: split?.variant(of: device))
            groups[group, default: 0] += 1
            let zone = zones.code(rows, 5)
            if zone >= byZone.count { byZone.append(0) }
            byZone[zone] += 1
            if let budget, try budget.isUsedUp(for: device) { overBudget += 1 }
        }
    }

    private mutating func reason(_ rows: RowStatement, _ device: Int64) -> SuppressionReason? {
        let reason = AudienceSelection.suppression(
            status: DeviceStatus(code: rows.int64(2)), alertsAllowed: rows.isNull(3) || rows.int64(3) != 0,
            pushType: pushType)
        if let reason { return reason }
        if split?.isHeldOut(device) == true { return .holdout }
        if case .never(let reason) = turns?.turn(inZone: rows.text(5)) { return reason }
        return nil
    }

    func reach() -> Reach {
        let slices = groups.map { group, count in
            Reach.Slice(
                environment: PushEnvironment(code: group.environment), locale: locales.texts[group.locale],
                variant: group.variant, count: count)
        }
        let zoneSlices = byZone.indices.map { Reach.ZoneSlice(zone: zones.texts[$0], count: byZone[$0]) }
        var byVariant = [Int](repeating: 0, count: variants)
        for slice in slices { if let variant = slice.variant { byVariant[variant] += slice.count } }
        return Reach(
            slices: slices.sorted { Self.key($0) < Self.key($1) }, suppressed: suppressed,
            byZone: zoneSlices.sorted { ($1.count, $0.zone ?? "") < ($0.count, $1.zone ?? "") }, byVariant: byVariant,
            silentBudget: overBudget)
    }

    /// Most first, then always in the same order.
    private static func key(_ slice: Reach.Slice) -> (Int, String, Int64, Int) {
        (-slice.count, slice.locale ?? "", slice.environment.code, slice.variant ?? -1)
    }
}
