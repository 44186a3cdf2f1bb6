import Model

/// What is wrong with a request: the first of them, and the number of the others. An answer must not grow with the
/// question.
struct ProblemList {
    static let shownMax = 20

    private var shown: [Problem.Place] = []
    private var count = 0

    init(_ places: some Sequence<Problem.Place> = []) {
        for place in places { add(place) }
    }

    /// Makes the words of a problem only if they are shown.
    mutating func add(_ place: @autoclosure () -> Problem.Place) {
        count += 1
        if shown.count < Self.shownMax { shown.append(place()) }
    }

    var places: [Problem.Place] {
        count > shown.count ? shown + [Problem.Place(detail: "and \((count - shown.count).grouped) more")] : shown
    }

    func throwIfAny() throws {
        guard count == 0 else { throw Problem.invalid(self) }
    }
}

extension String {
    /// Text of a request within an answer: at most 100 Unicode scalars of it.
    var shownShort: String {
        let scalars = unicodeScalars
        guard let end = scalars.index(scalars.startIndex, offsetBy: 100, limitedBy: scalars.endIndex),
            end < scalars.endIndex
        else { return self }
        return String(scalars[..<end]) + "…"
    }
}
