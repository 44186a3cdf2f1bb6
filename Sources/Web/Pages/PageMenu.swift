import Model

/// The menu: the sections, and the pages of the open section.
struct PageMenu: Sendable {
    struct Link: Sendable {
        var address: String
        var label: String
        /// Whether the open page is this page, or belongs to it.
        var isCurrent: Bool
        /// The number of requests that wait for the visitor. `nil` if there are none.
        var count: String?
    }

    /// The sections. Each leads to its first page.
    var sections: [Link] = []
    /// The name of the open section. `nil` if the open page belongs to none.
    var section: String?
    /// The pages of the open section, if there is more than one.
    var pages: [Link] = []
    var hasPages: Bool
}

extension PageMenu {
    private struct Page {
        var address: String
        var label: String
        var permission = AccessRole.Permission.read
        /// The beginnings of the other addresses that belong to the page.
        var below: [String] = []
        /// The address that belongs to another page, although it begins like these.
        var except: String?

        func contains(_ path: String) -> Bool {
            guard path != except else { return false }
            return path == address || (below + (address == "/" ? [] : [address + "/"])).contains { path.hasPrefix($0) }
        }
    }

    private static let all: [(label: String, pages: [Page])] = [
        (
            "Broadcasts",
            [
                Page(address: "/", label: "Broadcasts", below: ["/runs/"], except: "/runs/month"),
                Page(address: "/plans", label: "Plans"), Page(address: "/runs/month", label: "By month"),
            ]
        ),
        (
            "Campaigns",
            [
                Page(address: "/campaigns", label: "Campaigns", below: ["/new", "/changes"], except: "/new/template"),
                Page(address: "/templates", label: "Templates", below: ["/new/template"]),
            ]
        ),
        ("Calendar", [Page(address: "/calendar", label: "Calendar")]),
        (
            "Audience",
            [Page(address: "/segments", label: "Segments"), Page(address: "/devices", label: "Devices")]
        ),
        (
            "Admin",
            [
                Page(address: approvals, label: "Approvals"),
                Page(address: "/people", label: "People", permission: .tokens, below: ["/tokens"]),
                Page(address: "/audit", label: "Audit"), Page(address: "/health", label: "Health"),
                Page(address: "/stops", label: "Stop", permission: .halt), Page(address: "/setup", label: "Setup"),
                Page(address: "/guide", label: "Guide"),
            ]
        ),
    ]

    private static let approvals = "/approvals"

    /// - Parameters:
    ///   - path: the path of the open page.
    ///   - waiting: the number of requests for approval that wait for the visitor.
    init(for role: AccessRole, at path: String, waiting: Int) {
        let count = waiting > 0 ? "\(waiting)" : nil
        for (label, listed) in Self.all {
            let allowed = listed.filter { role.may($0.permission) }
            let isOpen = allowed.contains { $0.contains(path) }
            let hasApprovals = allowed.contains { $0.address == Self.approvals }
            sections.append(
                Link(
                    address: allowed.first?.address ?? "/", label: label, isCurrent: isOpen,
                    count: hasApprovals ? count : nil))
            guard isOpen else { continue }
            section = label
            guard allowed.count > 1 else { continue }
            pages = allowed.map { page in
                Link(
                    address: page.address, label: page.label, isCurrent: page.contains(path),
                    count: page.address == Self.approvals ? count : nil)
            }
        }
        hasPages = !pages.isEmpty
    }
}
