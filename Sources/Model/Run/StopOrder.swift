/// An order to send nothing within a scope until the order is lifted. It records its author and reason.
package struct StopOrder: Hashable, Sendable, Codable {
    /// The pushes that the order stops. The text form, in the STOP file and in the store, is `all`, `run 17` or
    /// `campaign new-podcast`. Only the file may also contain `run new-podcast/episode-42`, for a stop that could not
    /// query the store for the run's number.
    package enum Scope: Hashable, Sendable, Codable {
        case all
        case campaign(String)
        case run(Int64)
        case occurrence(campaign: String, occurrence: String)

        /// Returns `nil` for any other text. A name may contain blanks.
        package init?(_ text: String) {
            let trimmed = text.split(omittingEmptySubsequences: true, whereSeparator: \.isNewline).joined(
                separator: " "
            )
            .trimmed
            let first = trimmed.prefix { !$0.isWhitespace }
            let rest = String(trimmed.dropFirst(first.count)).trimmed
            switch (first, rest.isEmpty) {
            case ("all", true): self = .all
            case ("campaign", false): self = .campaign(rest)
            case ("run", false):
                if let run = Int64(rest) {
                    self = .run(run)
                    return
                }
                let parts = rest.split(separator: "/", maxSplits: 1).map(String.init)
                guard parts.count == 2 else { return nil }
                self = .occurrence(campaign: parts[0], occurrence: parts[1])
            default: return nil
            }
        }

        package init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let scope = Scope(text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a stop scope: \(text)")
            }
            self = scope
        }

        package func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }

        package var text: String {
            switch self {
            case .all: "all"
            case .campaign(let name): "campaign \(name)"
            case .run(let run): "run \(run)"
            case .occurrence(let campaign, let occurrence): "run \(campaign)/\(occurrence)"
            }
        }

        /// Whether the stop concerns one run. Such a stop is stored as a pause of the run.
        package var isOfOneRun: Bool {
            switch self {
            case .run, .occurrence: true
            case .all, .campaign: false
            }
        }

        /// A description for people.
        package var summary: String {
            switch self {
            case .all: "everything"
            case .campaign(let name): "the campaign \(name)"
            case .run(let run): "run \(run)"
            case .occurrence(let campaign, let occurrence): "run \(campaign)/\(occurrence)"
            }
        }

        /// The command that lifts the stop. A stopped run continues like a paused one.
        package var remedy: String {
            switch self {
            case .all: "fanfare stop --all --lift --reason TEXT"
            case .campaign(let name): "fanfare stop \(name) --lift --reason TEXT"
            case .run(let run): "fanfare resume \(run)"
            case .occurrence(let campaign, let occurrence): "fanfare resume \(campaign)/\(occurrence)"
            }
        }
    }

    package var scope: Scope
    /// The author of the order, as in the audit.
    package var by: String
    package var at: Timestamp
    package var reason: String?

    package init(_ scope: Scope, by: String, at: Timestamp, reason: String? = nil) {
        self.scope = scope
        self.by = by
        self.at = at
        self.reason = reason
    }

    /// Tells whether both are the same order from the same moment, even if their reasons are written differently.
    package func isSame(as other: StopOrder) -> Bool { scope == other.scope && at == other.at }

    /// `everything is stopped by anna (uid 1000) since 2026-12-01T09:00:00Z: wrong text`
    package var summary: String {
        "\(scope.summary) was stopped by \(by) at \(at.iso8601)\(reason.map { ": \($0)" } ?? "")"
    }

    /// The description, followed by the command that lifts the stop.
    package var refusal: String { "\(summary); `\(scope.remedy)` lets it continue" }
}

/// The stops in force, at most one for each scope.
package struct StopOrders: Hashable, Sendable, Codable {
    /// The oldest first.
    package private(set) var orders: [StopOrder]

    package init(_ orders: [StopOrder] = []) {
        self.orders = []
        for order in orders { put(order) }
    }

    package var isEmpty: Bool { orders.isEmpty }

    /// Returns the order with the widest scope that stops a run. `nil` if there is none.
    package func order(run: Int64?, campaign: String) -> StopOrder? {
        self[.all] ?? self[.campaign(campaign)] ?? run.flatMap { self[.run($0)] }
    }

    /// Returns the order for a run whose occurrence is also known.
    package func order(of run: Run) -> StopOrder? {
        order(run: run.id, campaign: run.campaign)
            ?? self[.occurrence(campaign: run.campaign, occurrence: run.occurrence)]
    }

    package subscript(scope: StopOrder.Scope) -> StopOrder? { orders.first { $0.scope == scope } }

    /// Adds an order. Returns false and changes nothing if an order with the same scope is in force.
    @discardableResult
    package mutating func put(_ order: StopOrder) -> Bool {
        guard self[order.scope] == nil else { return false }
        orders.append(order)
        orders.sort { $0.at < $1.at }
        return true
    }

    /// Removes the order of a scope and returns it. Returns `nil` if no order of this scope was in force.
    @discardableResult
    package mutating func lift(_ scope: StopOrder.Scope) -> StopOrder? {
        let order = self[scope]
        orders.removeAll { $0.scope == scope }
        return order
    }
}
