package import Foundation

/// Between moments and what the clocks of a time zone show.
extension TimeZone {
    /// What its clocks show at a moment.
    package func wall(at moment: Timestamp) -> WallTime {
        WallTime(seconds: moment.seconds + offset(at: moment.seconds))
    }

    /// When its clocks show this. A time they show twice is the first of the two; one that they leave out, because they
    /// are put forward over it, is the moment they are put forward.
    package func moment(of wall: WallTime) -> Timestamp {
        // Wide enough for every offset and for a change across the date line. No zone changes twice within it.
        let margin: Int64 = 48 * 3600
        let before = offset(at: wall.seconds - margin)
        let after = offset(at: wall.seconds + margin)
        let first = wall.seconds - before
        guard before != after else { return Timestamp(seconds: first) }
        let change = change(from: before, after: wall.seconds - margin, upTo: wall.seconds + margin)
        if first < change { return Timestamp(seconds: first) }
        return Timestamp(seconds: max(wall.seconds - after, change))
    }

    private func offset(at seconds: Int64) -> Int64 {
        Int64(secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds))))
    }

    /// The first second at which the offset is not `offset` any more.
    private func change(from offset: Int64, after start: Int64, upTo end: Int64) -> Int64 {
        var low = start
        var high = end
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if self.offset(at: middle) == offset { low = middle } else { high = middle }
        }
        return high
    }
}

extension Timestamp {
    package init(seconds: Int64) {
        self.init(milliseconds: seconds * 1000)
    }
}
