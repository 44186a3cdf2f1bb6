/// A value to choose in a form, with its label.
struct FormChoice: Sendable {
    var value: String
    var label: String
    var isChosen: Bool
}
