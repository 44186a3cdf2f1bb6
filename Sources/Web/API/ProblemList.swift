import Model

/// The problems of a request: the first ones, and the number of the others. A response must not grow with the request.
struct ProblemList {
    static let shownMax = 20

    private var shown: [Problem.Place] = []
    private var count = 0

    init(_ places: some Sequence<Problem.Place> = []) {
        for place in places { add(place) }
    }

    /// Adds a problem. Its words are created only if they are shown.
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
    /// The text of a request for use in a response: at most 100 Unicode scalars of it.
    var shownShort: String {
        let scalars = unicodeScalars
        guard let end = scalars.index(scalars.startIndex, offsetBy: 100, limitedBy: scalars.endIndex),
            end < scalars.endIndex
        else { return self }
        return String(scalars[..<end]) + "…"
    }
}
