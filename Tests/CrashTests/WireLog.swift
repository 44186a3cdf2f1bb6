import Foundation

/// The requests that the simulator received, from its request log.
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

    /// The number of times that each push was accepted, whether or not the sender received the response.
    var acceptances: [String: Int] {
        Dictionary(entries.filter { $0.status == 200 }.map { ($0.id, 1) }, uniquingKeysWith: +)
    }

    /// The time of the first request of each push, whatever the response.
    var firstAsked: [String: Int] { Dictionary(entries.map { ($0.id, $0.time) }, uniquingKeysWith: min) }

    /// Returns the number of requests in this interval of milliseconds.
    func requests(within interval: ClosedRange<Int>) -> Int { entries.count { interval.contains($0.time) } }

    /// The number of 5xx responses for each push, which may have arrived nevertheless.
    var troubles: [String: Int] {
        Dictionary(entries.filter { $0.status >= 500 }.map { ($0.id, 1) }, uniquingKeysWith: +)
    }

    /// Returns the number of requests, after a sender was continued, on connections that were active before it was
    /// stopped and silent in between. Returns 0 if more connections were silent than the sender has lanes: another
    /// sender stood still as well, so the connections cannot be told apart.
    func requests(of stopped: Int, after continued: Int, lanes: Int) -> Int {
        // Requests that were in the kernel's buffers when the sender was stopped still arrive.
        let settled = stopped + 1_000
        let silent = Dictionary(grouping: entries, by: \.connection).values.map { $0.map(\.time) }.filter { times in
            let wasThere = times.contains { $0 > stopped - 3_000 && $0 < stopped }
            return wasThere && !times.contains { $0 > settled && $0 < continued }
        }
        guard silent.count <= lanes else { return 0 }
        return silent.reduce(0) { $0 + $1.count { $0 >= continued } }
    }

    /// Returns the number of accepted pushes whose preceding window already contained `limit` others.
    ///
    /// - Parameter subject: returns, for a token, the subject whose pushes are counted together.
    func budgetViolations(limit: Int, windowMs: Int, of subject: (String) -> String = { $0 }) -> Int {
        let times = Dictionary(grouping: entries.filter { $0.status == 200 }) { subject($0.token ?? "") }
            .mapValues { $0.map(\.time).sorted() }
        return times.values.reduce(0) { sum, times in
            sum + times.indices.dropFirst(limit).count { times[$0] - times[$0 - limit] < windowMs }
        }
    }

    /// Returns the number of pushes whose first acceptance followed `limit` other pushes within the window. The copies
    /// of one delivery are one push, because they replace each other on the screen.
    ///
    /// - Parameter subject: returns, for a token, the subject whose pushes are counted together.
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
