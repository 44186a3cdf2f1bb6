import Foundation
import Hummingbird

/// A form that was sent without a session, kept in the sign-in page so that no typed text is lost. The server stores
/// nothing of it.
///
/// After the sign-in, the browser sends the form again to ``address``. Only pages that show the form's text and change
/// nothing are such an address: a form is never carried out because a person has signed in.
struct KeptForm: Sendable {
    struct Field: Sendable {
        var name: String
        var value: String
    }

    /// The maximum size of the names and values, in bytes: twice the size of the largest file, and less than a form may
    /// have.
    static let bytesMax = 1 << 19
    /// The field of the sign-in form that holds ``address``.
    static let addressField = "again"

    /// The fields of the sign-in form itself, and those that do more than show the text.
    private static let leftOut: Set<String> = ["token", "next", addressField, "part", "over"]
    /// The first part of the paths of the pages whose forms are kept.
    private static let roots: Set<String> = ["campaigns", "new", "templates"]
    /// The last part of the paths to which such forms are sent.
    private static let sent: Set<String> = ["check", "save", "plan", "test-send", "compose", "next"]
    /// The last part of the path of the page that shows them again.
    private static let shown = "check"

    var address: String
    var fields: [Field]

    /// Returns `nil` if the form is not one with a text, or is too large to be kept.
    ///
    /// - Parameter path: the path to which the form was sent.
    init?(path: String, _ fields: [String: String]) {
        guard let address = Self.address(showing: path) else { return nil }
        let kept = fields.filter { !Self.leftOut.contains($0.key) }.sorted { $0.key < $1.key }
        guard kept.reduce(0, { $0 + $1.key.utf8.count + $1.value.utf8.count }) <= Self.bytesMax else { return nil }
        self.address = address
        self.fields = kept.map(Field.init)
    }

    /// Returns the address of the page that shows a form again, or `nil` if the form is not kept.
    private static func address(showing path: String) -> String? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 4, parts[0].isEmpty, roots.contains(parts[1]), sent.contains(parts[3]) else { return nil }
        return PageRequest.ownAddress("/\(parts[1])/\(parts[2])/\(shown)")
    }
}

extension KeptForm.Field {
    fileprivate init(_ field: (key: String, value: String)) { self.init(name: field.key, value: field.value) }
}
