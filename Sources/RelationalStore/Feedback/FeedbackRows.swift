import Model
import Store

/// A row's primary key in the table of events.
struct FeedbackKey: Hashable {
    var device: Int64
    var run: Int64
    var kind: Int64
    var name: String
    var idHigh: Int64
    var idLow: Int64
}

/// The rows of a batch of events, in the order of the table. It has no type parameter, so that each operation on a row
/// is compiled for it: thousands of rows are recorded per second while pushes are sent.
struct FeedbackRows {
    /// The delivery that an event is about.
    struct Push {
        var variant: Int?
        var locale: Int?
        /// Whether the event counts among those of accepted pushes. A push that is still in flight has evidently
        /// arrived, so its event does.
        var isAccepted: Bool
        /// When the outcome was recorded. `nil` while the push is in flight.
        var settledAt: Timestamp?
    }

    /// The deliveries of a run that events are about.
    struct Pushes {
        /// The outcomes of the run by device were pruned. Its events count among those of accepted pushes, because
        /// hardly any device can report a push that APNs did not accept.
        static let pruned = Pushes(byDevice: nil)

        private let byDevice: [Int64: Push]?

        init(byDevice: [Int64: Push]?) { self.byDevice = byDevice }

        fileprivate subscript(device: Int64) -> Push? { byDevice?[device] }

        /// Returns the minute by which an event is counted, or -1 if its push was not accepted.
        fileprivate func minute(of event: FeedbackEvent, about device: Int64) -> Int {
            guard let byDevice else { return 0 }
            guard let push = byDevice[device], push.isAccepted else { return -1 }
            return push.settledAt.map { FeedbackMinute.of(event.at - $0) } ?? 0
        }
    }

    struct Cell: Hashable {
        var run: Int64
        var kind: Int64
        var name: String
        var variant: Int
        var locale: Int
        var minute: Int
    }

    struct Sum {
        var events = 0
        var valueMicros: Int64 = 0

        fileprivate mutating func add(_ value: Int64) {
            events += 1
            valueMicros = valueMicros.saturatingSum(value)
        }
    }

    private(set) var verdicts: [FeedbackVerdict] = []
    private(set) var keys: [FeedbackKey] = []
    /// The index of each row's event.
    private(set) var events: [Int] = []
    private(set) var cells: [Cell: Sum] = [:]
    /// The names under which rows are counted, by place, if they differ from the names in the keys.
    private var countedNames: [Int: String] = [:]

    init(_ given: [FeedbackEvent], _ sources: FeedbackSources) {
        var rows: [(key: FeedbackKey, event: Int)] = []
        var seen: Set<FeedbackKey> = []
        verdicts.reserveCapacity(given.count)
        rows.reserveCapacity(given.count)
        seen.reserveCapacity(given.count)
        for (index, event) in given.enumerated() {
            let run: Int64 = if case .push(let run, _) = event.source { run } else { 0 }
            guard let device = sources.device(of: event.source) else {
                verdicts.append(.unknownDevice)
                continue
            }
            guard run == 0 || sources.runs[run] != nil else {
                verdicts.append(.unknownPush)
                continue
            }
            // A device opens a push once, but may buy twice after it.
            let hasID = run == 0 || !event.kind.isAboutPush
            let key = FeedbackKey(
                device: device, run: run, kind: event.kind.rawValue, name: event.name,
                idHigh: hasID ? event.id.high : 0, idLow: hasID ? event.id.low : 0)
            verdicts.append(.repeated)
            if seen.insert(key).inserted { rows.append((key, index)) }
        }
        rows.sort { ($0.key.device, $0.key.run) < ($1.key.device, $1.key.run) }
        keys = rows.map(\.key)
        events = rows.map(\.event)
    }

    /// Chooses the names under which events of pushes are counted. The row of an action also gets that name, so that
    /// a device counts once. The row of a conversion keeps its name, because it may be the goal of another run.
    mutating func name(
        _ given: [FeedbackEvent], _ names: (_ run: Int64, _ kind: FeedbackKind) throws -> FeedbackNames
    ) throws {
        var found: [NamedKind: FeedbackNames] = [:]
        for place in keys.indices {
            let (key, kind) = (keys[place], given[events[place]].kind)
            guard key.run != 0, kind.isNamed else { continue }
            let named = NamedKind(run: key.run, kind: kind)
            var kept = try found[named] ?? names(key.run, kind)
            let name = try kept.counted(key.name, of: key.device)
            found[named] = kept
            guard name != key.name else { continue }
            if kind.isAboutPush { keys[place].name = name } else { countedNames[place] = name }
        }
    }

    private struct NamedKind: Hashable {
        var run: Int64
        var kind: FeedbackKind
    }

    /// Marks a row that was not there before.
    mutating func mark(_ place: Int, _ verdict: FeedbackVerdict = .recorded) { verdicts[events[place]] = verdict }

    /// Returns the events that wait, each with its device: an installation may get another one.
    func waiting(_ given: [FeedbackEvent]) -> [FeedbackEvent] {
        keys.indices.compactMap { place in
            guard verdicts[events[place]] == .waiting else { return nil }
            var event = given[events[place]]
            if keys[place].run == 0 { event.source = .device(keys[place].device) }
            return event
        }
    }

    mutating func markAllWaiting() {
        for place in keys.indices { mark(place, .waiting) }
    }

    /// The devices of the rows that were not written, in order. Such a row was there before, or its device is unknown.
    var unwrittenDevices: [Int64] {
        keys.indices.lazy.filter { verdicts[events[$0]] != .recorded }.map { keys[$0].device }
    }

    /// Marks all events of the devices that the store does not have.
    mutating func markUnknown(_ devices: Set<Int64>, _ given: [FeedbackEvent], _ sources: FeedbackSources) {
        guard !devices.isEmpty else { return }
        for (index, event) in given.enumerated() {
            if let device = sources.device(of: event.source), devices.contains(device) {
                verdicts[index] = .unknownDevice
            }
        }
    }

    /// Returns the new rows of pushes by run.
    func written() -> [Int64: [Int]] {
        var places: [Int64: [Int]] = [:]
        for place in keys.indices where keys[place].run != 0 && verdicts[events[place]] == .recorded {
            places[keys[place].run, default: []].append(place)
        }
        return places
    }

    /// Counts new rows of one run.
    mutating func count(_ places: [Int], _ given: [FeedbackEvent], _ pushes: Pushes) {
        for place in places {
            let (key, event) = (keys[place], given[events[place]])
            let device = event.sentTo ?? key.device
            let push = pushes[device]
            let cell = Cell(
                run: key.run, kind: key.kind, name: countedNames[place] ?? key.name, variant: push?.variant ?? -1,
                locale: push?.locale ?? -1, minute: pushes.minute(of: event, about: device))
            cells[cell, default: Sum()].add(event.valueMicros ?? 0)
        }
    }
}
