import CampaignFiles
import Model

/// A moment in an option: a date, a time, or an age such as `7d`.
enum MomentOption {
    static func parse(_ text: String, now: Timestamp) -> Timestamp? {
        ISOTime.parse(text) ?? WrittenDuration.parse(text).map { now - $0 }
    }
}
