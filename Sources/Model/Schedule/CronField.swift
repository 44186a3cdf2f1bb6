/// The numbers that one field of a cron expression allows.
struct CronField: Hashable, Sendable {
    struct Kind: Sendable {
        var name: String
        var range: ClosedRange<Int>
        /// Stand for the numbers from the start of the range on.
        var names: [String] = []

        static let minute = Kind(name: "minute", range: 0...59)
        static let hour = Kind(name: "hour", range: 0...23)
        static let dayOfMonth = Kind(name: "day of month", range: 1...31)
        static let month = Kind(
            name: "month", range: 1...12,
            names: ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"])
        /// Sunday is 0 and 7.
        static let dayOfWeek = Kind(
            name: "day of week", range: 0...7, names: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])

        var isWeek: Bool { range.upperBound == 7 }
    }

    /// One bit per number.
    private var bits: UInt64 = 0
    /// Begins with `*`.
    let isOpen: Bool

    init(_ text: Substring, _ kind: Kind) throws(CronExpression.Fault) {
        isOpen = text.hasPrefix("*")
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let numbers = Self.numbers(part, kind) else {
                let limits = "\(kind.range.lowerBound) to \(kind.range.upperBound)"
                throw CronExpression.Fault(
                    "\"\(part)\" is no \(kind.name) (\(limits)), range or step")
            }
            for number in numbers { bits |= 1 << UInt64(kind.isWeek ? number % 7 : number) }
        }
    }

    func contains(_ number: Int) -> Bool { bits & 1 << UInt64(number) != 0 }

    /// In rising order.
    var values: [Int] { (0..<64).filter(contains) }

    private static func numbers(_ part: Substring, _ kind: Kind) -> StrideThrough<Int>? {
        let pieces = part.split(separator: "/", omittingEmptySubsequences: false)
        guard let base = pieces.first, pieces.count <= 2 else { return nil }
        var step = 1
        if pieces.count == 2 {
            guard let written = UInt(pieces[1]), written >= 1, written <= kind.range.upperBound else { return nil }
            step = Int(written)
        }
        guard let range = range(base, kind, isStepped: pieces.count == 2) else { return nil }
        return stride(from: range.lowerBound, through: range.upperBound, by: step)
    }

    /// A range over the week's end is given beyond 7, to be taken modulo 7.
    private static func range(_ text: Substring, _ kind: Kind, isStepped: Bool) -> ClosedRange<Int>? {
        if text == "*" { return kind.isWeek ? 0...6 : kind.range }
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { number($0, kind) }
        guard let first = ends.first, let from = first else { return nil }
        switch ends.count {
        // `5/15` is from 5 to the end.
        case 1: return isStepped ? from...max(from, kind.isWeek ? 6 : kind.range.upperBound) : from...from
        case 2:
            guard let to = ends[1] else { return nil }
            if from <= to { return from...to }
            return kind.isWeek ? from...(to + 7) : nil
        default: return nil
        }
    }

    private static func number(_ text: Substring, _ kind: Kind) -> Int? {
        if let index = kind.names.firstIndex(of: text.uppercased()) { return kind.range.lowerBound + index }
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text) else {
            return nil
        }
        return kind.range.contains(number) ? number : nil
    }
}
