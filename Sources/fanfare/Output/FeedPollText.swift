import Model
import Daemon
import Campaigns

/// What a poll found, in a line for each thing.
enum FeedPollText {
    static func text(_ poll: FeedPoll, of campaign: String) -> String {
        let runs = poll.runs.map { "\(campaign): \($0.occurrence) is new, run \($0.id)" }
        let ended = poll.ended.map { ended in
            switch ended {
            case .missed(let occurrence, let reason): "\(campaign): \(occurrence) is missed: \(reason)"
            case .refused(let occurrence, let reason): "\(campaign): \(occurrence) is refused: \(reason)"
            }
        }
        return (["\(campaign): \(words(poll))"] + runs + ended).joined(separator: "\n")
    }

    /// What a poll's result means for the exit code; nil: nothing.
    static func failure(_ poll: FeedPoll, of campaign: String) -> Failure? {
        switch poll.found {
        case .failed(let reason): return Failure(.tryAgain, "\(campaign): \(reason)")
        case .tooManyNew: return Failure(.refused, "\(campaign): \(words(poll))")
        case .unchanged, .catalogue, .items, .overtaken: break
        }
        let refused = poll.ended.contains { if case .refused = $0 { true } else { false } }
        return refused ? Failure(.refused, "\(campaign): not sent, see above") : nil
    }

    private static func words(_ poll: FeedPoll) -> String {
        switch poll.found {
        case .unchanged: "nothing has changed"
        case .catalogue(let items): "polled for the first time; its \(items.grouped) items are the back catalogue"
        case .items(let count): "\(count.grouped) items, \((poll.runs.count + poll.ended.count).grouped) new"
        case .tooManyNew(let count, let max):
            "\(count.grouped) items are new at once, max_new is \(max); none is sent, `fanfare run` sends one by hand"
        case .failed(let reason): reason
        case .overtaken: "another process has just polled it"
        }
    }
}
