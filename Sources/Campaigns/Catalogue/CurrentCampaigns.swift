import CampaignFiles
import Model
import Synchronization

/// The campaigns of the configured folder, for checks that are repeated often. Each call reads only the files that have
/// changed.
final class CurrentCampaigns: Sendable {
    private let catalogue = Mutex(CampaignCatalogue())
    private let configuration: @Sendable () -> Configuration

    init(configuration: @escaping @Sendable () -> Configuration) { self.configuration = configuration }

    /// Returns a sentence for each campaign whose next scheduled run will fail because a variable has no value.
    func failing(after now: Timestamp, _ values: StartValues) -> [String] {
        let folders = configuration()
        let ready = catalogue.withLock { catalogue in
            catalogue.refresh(folders)
            return catalogue.ready
        }
        return ready.compactMap { ready in
            guard let next = ready.timetable?.next(after: now) else { return nil }
            let missing = ready.missingValues(at: next, values)
            guard !missing.isEmpty else { return nil }
            return "campaign \(ready.campaign.name), start \(next.key), due at \(next.startsAt.iso8601), "
                + "\(MissingValues.summary(missing)); give the start its values, or give each variable a default in the campaign's file"
        }
    }
}
