import Campaigns
import Foundation
import Hummingbird
import Model

/// The facts that every page shows around its content.
struct PageFrame: Sendable {
    /// The visitor. `nil` if no person is signed in.
    var visitor: Caller?
    /// The stops in force.
    var stops: [StopBanner] = []
    /// The number of requests for approval that wait for the visitor.
    var waiting = 0
    /// The visitor's zone, if the visitor or the browser has named one.
    var chosenZone: TimeZone?

    /// The zone of the times.
    var zone: TimeZone { chosenZone ?? .gmt }
}

extension PageFrame {
    /// Creates the frame of a request, before its visitor is known.
    init(_ request: Request) {
        chosenZone = request.cookies[ViewerZone.cookie].flatMap { ViewerZone.named($0.value) }
    }

    /// Reads the facts for a visitor.
    mutating func read(_ cases: UseCases, for visitor: Caller) async {
        self.visitor = visitor
        let found = await cases.stops(seenBy: visitor)
        stops = ViewerZone.$current.withValue(zone) { found.map { StopBanner($0, visitor) } }
        waiting = await Self.waiting(cases, for: visitor)
    }

    /// Returns the number of plans that the visitor may sign and has not signed, and of stages that the visitor may
    /// approve. A page without the number is better than none, so a failed read counts as 0.
    private static func waiting(_ cases: UseCases, for visitor: Caller) async -> Int {
        guard visitor.role.may(.approve) else { return 0 }
        let plans = try? await cases.approving.waiting(for: visitor.actor, now: cases.now, sees: visitor.sees)
        var stages = 0
        for run in (try? await cases.runs.runsAwaitingApproval()) ?? []
        where visitor.sees(run.definition.campaign.topic) {
            if (try? await cases.approving.requireOther(than: run, visitor.actor)) != nil { stages += 1 }
        }
        return (plans ?? 0) + stages
    }
}
