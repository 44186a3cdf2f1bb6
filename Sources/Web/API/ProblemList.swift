import Model

/// The problems of a request: the first 20, and the number of the others. The size of a response therefore does not
/// depend on the request.
struct ProblemList {
    static let shownMax = 20

    private var shown: [Problem.Place] = []
    private var count = 0

    init(_ places: some Sequence<Problem.Place> = []) {
        for place in places { add(place) }
    }

    /// Adds a problem. Evaluates its text only if the problem is shown.
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
    /// A text of the request for use in a response, cut to 100 Unicode scalars.
    var shownShort: String {
        let scalars = unicodeScalars
        guard let end = scalars.index(scalars.startIndex, offsetBy: 100, limitedBy: scalars.endIndex),
            end < scalars.endIndex
        else { return self }
        return String(scalars[..<end]) + "…"
    }
}
