import Foundation

/// What APNs' side saw, from the simulator's request log.
struct WireLog {
    struct Entry: Decodable {
        var time: Int
        var token: String?
        var id: String
        var status: Int
        var connection = 0

        enum CodingKeys: String, CodingKey {
            case token, status, connection
            case time = "time_ms"
            case id = "apns_id"
        }
    }

    let entries: [Entry]

    init(_ entries: [Entry]) {
        self.entries = entries
    }

    init(folder: String) throws {
        let decoder = JSONDecoder()
        entries = try String(contentsOfFile: "\(folder)/wire.jsonl", encoding: .utf8).split(separator: "\n")
            .map { try decoder.decode(Entry.self, from: Data($0.utf8)) }
    }

    /// How often each push was accepted, whether or not the answer arrived.
    var acceptances: [String: Int] {
        Dictionary(entries.filter { $0.status == 200 }.map { ($0.id, 1) }, uniquingKeysWith: +)
    }

    /// When each push was asked for first, whatever the answer.
    var firstAsked: [String: Int] { Dictionary(entries.map { ($0.id, $0.time) }, uniquingKeysWith: min) }

    /// Requests within these milliseconds.
    func requests(within interval: ClosedRange<Int>) -> Int { entries.count { interval.contains($0.time) } }

    /// How often the service failed over each push, which may have arrived all the same.
    var troubles: [String: Int] {
        Dictionary(entries.filter { $0.status >= 500 }.map { ($0.id, 1) }, uniquingKeysWith: +)
    }

    /// Requests over connections on which nothing came while their sender was stopped, although there was before.
    func requests(of stopped: Int, after continued: Int) -> Int {
        // What stood in the kernel's buffers when it was stopped still arrives.
        let settled = stopped + 1_000
        return Dictionary(grouping: entries, by: \.connection).values.reduce(0) { sum, entries in
            let times = entries.map(\.time)
            let wasThere = times.contains { $0 > stopped - 3_000 && $0 < stopped }
            let wasSilent = !times.contains { $0 > settled && $0 < continued }
            return sum + (wasThere && wasSilent ? times.count { $0 >= continued } : 0)
        }
    }

    /// Pushes that reached a device while the window before them held `limit` others already.
    ///
    /// - Parameter subject: by token, whose pushes are counted together.
    func budgetViolations(limit: Int, windowMs: Int, of subject: (String) -> String = { $0 }) -> Int {
        let times = Dictionary(grouping: entries.filter { $0.status == 200 }) { subject($0.token ?? "") }
            .mapValues { $0.map(\.time).sorted() }
        return times.values.reduce(0) { sum, times in
            sum + times.indices.dropFirst(limit).count { times[$0] - times[$0 - limit] < windowMs }
        }
    }

    /// Pushes that first reached a device while the window before them held `limit` others already. The copies of one delivery
    /// are one push: they take each other's place on the screen.
    ///
    /// - Parameter subject: by token, whose pushes are counted together.
    func capViolations(limit: Int, windowMs: Int, of subject: (String) -> String) -> Int {
        Dictionary(grouping: entries.filter { $0.status == 200 }) { subject($0.token ?? "") }.values.reduce(0) {
            sum, entries in
            let pushes = Dictionary(grouping: entries, by: \.id).mapValues { $0.map(\.time).sorted() }
            return sum
                + pushes.count { id, times in
                    let others = pushes.count { other, otherTimes in
                        other != id && otherTimes.contains { $0 < times[0] && times[0] - $0 < windowMs }
                    }
                    return others >= limit
                }
        }
    }
}
