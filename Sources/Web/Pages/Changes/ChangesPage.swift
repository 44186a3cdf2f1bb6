import Campaigns
import Model

/// The values of the page of waiting changes.
struct ChangesPage: Sendable {
    /// The number of changes on a page, at least. Changes that are released together are on one page.
    static let shown = 20

    struct Change: Sendable {
        var id: String
        var heading: String
        var summary: String
        var address: String
        var text: String
        /// The file's current text. `nil` if the file does not exist yet.
        var current: String?
        var mayRelease: Bool
        var isOutdated: Bool
        /// The numbers of the changes that are released with this one, such as `changes 3 and 4`.
        var together: String?
        /// The identities of the texts that belong together, for the forms.
        var seen: String

        init(_ detail: ChangeDetailResult, mayRelease: Bool) {
            let change = detail.change
            id = "change-\(change.id)"
            heading = "Change \(change.id): \(change.kind) \(change.name)"
            summary = "\(PersonName.shown(change.author)), \(change.askedAt.shownTime)"
            address = "/changes/\(change.id)"
            text = detail.text
            current = detail.current
            self.mayRelease = mayRelease
            isOutdated = change.isOutdated
            together = change.together?.changeNumbers
            seen = ChangesPage.field(detail.texts)
        }
    }

    var changes: [Change]
    var isEmpty: Bool
    /// Such as `Changes 1 to 20 of 45`. `nil` if all changes are on the page.
    var count: String?
    /// The addresses of the pages before and after this one.
    var earlier: String?
    var later: String?
    var problem: [String]

    /// Returns the address at which the page shows the change.
    static func address(of id: Int64) -> String { "/changes?change=\(id)#change-\(id)" }

    /// Returns the changes of each page. Changes that are released together follow each other.
    static func pages(of listed: [ChangeResult]) -> [[ChangeResult]] {
        var pages: [[ChangeResult]] = []
        var placed: Set<Int64> = []
        for change in listed where !placed.contains(change.id) {
            let ids = Set([change.id] + (change.together ?? []))
            placed.formUnion(ids)
            if pages.last.map({ $0.count >= shown }) ?? true { pages.append([]) }
            pages[pages.count - 1] += listed.filter { ids.contains($0.id) }
        }
        return pages
    }

    /// Returns the value of the forms' field `seen`, such as `3:9f86… 4:60303…`.
    static func field(_ texts: [ChangeText]) -> String {
        texts.map { "\($0.id):\($0.etag)" }.joined(separator: " ")
    }

    /// Returns the texts that the field `seen` names. Leaves out what is none, so that the use case refuses the form.
    static func texts(ofField field: String) -> [ChangeText] {
        field.split(separator: " ").compactMap { text in
            let parts = text.split(separator: ":")
            guard parts.count == 2, let id = Int64(parts[0]) else { return nil }
            return ChangeText(id: id, etag: String(parts[1]))
        }
    }
}

extension ChangeResult {
    /// The change in one line, with its author and its time as pages show them.
    var summaryOnPage: String { summary(by: PersonName.shown(author), at: askedAt.shownTimeAndZone) }
}
