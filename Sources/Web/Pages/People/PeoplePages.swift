import Campaigns
import Hummingbird
import Model

/// The page of people and programs with their access, for an admin.
struct PeoplePages: Sendable {
    struct Page: Sendable {
        /// The link of a new invitation. It is shown only once.
        struct Link: Sendable {
            var name: String
            var address: String
        }

        struct Token: Sendable {
            /// The form that changes role and app.
            struct Change: Sendable {
                var address: String
                var roles: [FormChoice]
                var apps: [FormChoice]
            }

            var name: String
            var role: String
            var topic: String
            var state: String
            var colour: String
            var made: PageHTML
            var madeBy: String
            var ends: PageHTML
            var used: PageHTML
            /// The address that revokes the token. `nil` if the token is no longer valid.
            var revokeAddress: String?
            /// `nil` if the token is not valid.
            var change: Change?
        }

        /// A form for a person or a program, with the values as typed.
        struct New: Sendable {
            var name = ""
            var expires = ""
            var roles: [FormChoice]
            var apps: [FormChoice]
            /// Whether the form is shown open.
            var isOpen = false
        }

        var link: Link?
        /// The secret of the token that was just created. It is shown only once.
        var secret: String?
        var problem: String?
        var person: New
        var program: New
        var tokens: [Token]
        var isEmpty: Bool
    }

    /// The forms of the page.
    private enum Form { case person, program, change }

    let cases: UseCases

    // The page had the address /tokens, which bookmarks and programs of the operator know.
    var routes: [PageRoute] {
        [
            .get("/people", .tokens, list), .post("/people/invite", .tokens, invite),
            .post("/people/{token}/change", .tokens, change),
            .get("/tokens", .tokens, list), .post("/tokens", .tokens, create),
            .post("/tokens/{token}/revoke", .tokens, revoke),
        ]
    }

    @Sendable private func list(_ request: PageRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "tokens")
        if request.query("format") == "csv" { return .table(try ListTable.text(try await tokens())) }
        return try await page(request)
    }

    /// Invites a person. The response is not a redirect, because only this response contains the link.
    @Sendable private func invite(_ request: PageRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "people")
        let form = try await request.form()
        do {
            let made = try await cases.access.invite(
                name: PersonName.account(for: form["name", default: ""]), role: try role(form), topic: try topic(form),
                by: try request.caller.actor, now: cases.now)
            let address = "\(request.ownOrigin)/join/\(made.secret)"
            return try await page(request, link: .init(name: made.invitation.name, address: address))
        } catch {
            return try await refused(request, .person, form, error)
        }
    }

    /// Creates a token for a program. The response is not a redirect, because only this response contains the secret.
    @Sendable private func create(_ request: PageRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "tokens")
        let form = try await request.form()
        let given = { (name: String) in form[name].flatMap { $0.isEmpty ? nil : $0 } }
        do {
            let made = try await TokenOperations.create(
                TokenOperations.Request(
                    name: form["name", default: ""], role: form["role", default: ""], topic: given("topic"),
                    expires: given("expires")), cases, by: request.caller.actor)
            return try await page(request, secret: made.secret)
        } catch {
            return try await refused(request, .program, form, error)
        }
    }

    @Sendable private func change(_ request: PageRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "people")
        let form = try await request.form()
        do {
            _ = try await cases.access.change(
                request.path("token"), role: try role(form), topic: try topic(form), by: try request.caller.actor,
                now: cases.now)
            return PageRequest.seeOther("/people")
        } catch {
            return try await refused(request, .change, form, error)
        }
    }

    @Sendable private func revoke(_ request: PageRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "tokens")
        do {
            _ = try await cases.access.revoke(
                request.path("token"), keepsAdmin: true, by: request.caller.actor, now: cases.now)
            return PageRequest.seeOther("/people")
        } catch {
            return try await refused(request, .change, [:], error)
        }
    }

    private func role(_ form: [String: String]) throws -> AccessRole {
        try AccessRole(rawValue: form["role", default: ""]).orThrow(
            Failure(.invalidData, "choose a role from the list"))
    }

    private func topic(_ form: [String: String]) throws -> String? {
        guard let topic = form["topic"], !topic.isEmpty else { return nil }
        guard cases.configuration().apps.contains(where: { $0.topic == topic }) else {
            throw Failure(.invalidData, "choose an app from the list")
        }
        return topic
    }

    private func tokens() async throws -> [AccessTokenResult] {
        try await cases.access.list().map { AccessTokenResult($0, now: cases.now) }
    }

    private func refused(
        _ request: PageRequest, _ form: Form, _ fields: [String: String], _ error: any Error
    ) async throws -> Response {
        let problem = try Problem.refusal(error, for: request.caller)
        return try await page(request, form: form, fields, problem: problem)
    }

    private func page(
        _ request: PageRequest, link: Page.Link? = nil, secret: String? = nil, form: Form? = nil,
        _ fields: [String: String] = [:], problem: Problem? = nil
    ) async throws -> Response {
        let tokens = try await tokens()
        let topics = cases.configuration().apps.map(\.topic)
        let people = AccessRole.allCases.filter { $0 != .registrar }
        func new(_ own: Form, _ roles: [AccessRole], _ usual: AccessRole, expires: String) -> Page.New {
            let typed = form == own ? fields : [:]
            return Page.New(
                name: typed["name", default: ""], expires: typed["expires", default: expires],
                roles: FormChoice.roles(roles, chosen: typed["role", default: usual.rawValue]),
                apps: FormChoice.apps(topics, chosen: typed["topic"]), isOpen: form == own)
        }
        let page = Page(
            link: link, secret: secret, problem: problem?.detail,
            person: new(.person, people, .author, expires: ""),
            program: new(.program, AccessRole.allCases, .registrar, expires: "90d"),
            // The newest comes first, because an admin usually looks for it.
            tokens: tokens.reversed().map { Page.Token($0, topics) }, isEmpty: tokens.isEmpty)
        return try request.page(.people, title: "People", page, status: .init(code: problem?.status ?? 200))
    }
}

extension FormChoice {
    static func roles(_ roles: [AccessRole], chosen: String) -> [Self] {
        roles.map { Self(value: $0.rawValue, label: "\($0.rawValue): \($0.about)", isChosen: $0.rawValue == chosen) }
    }

    /// Returns the choice of one app or all. It contains the chosen app, even if the configuration does not.
    static func apps(_ topics: [String], chosen: String?) -> [Self] {
        let chosen = chosen ?? ""
        let listed = [""] + topics + (chosen.isEmpty || topics.contains(chosen) ? [] : [chosen])
        return listed.map { Self(value: $0, label: $0.isEmpty ? "All apps" : $0, isChosen: $0 == chosen) }
    }
}

extension PeoplePages.Page.Token {
    fileprivate init(_ token: AccessTokenResult, _ topics: [String]) {
        name = token.name
        role = token.role
        topic = token.topic ?? "all apps"
        state = token.state
        colour = StateColour.of(token.state)
        (made, madeBy) = (PageHTML(time: token.createdAt), PersonName.shown(token.createdBy))
        ends = PageHTML(time: token.revokedAt ?? token.expiresAt ?? "when revoked")
        used = PageHTML(time: token.lastUsedAt ?? "never")
        let isGood = token.state == "good"
        revokeAddress = isGood || token.state == "invited" ? "/tokens/\(token.id)/revoke" : nil
        guard isGood else { return }
        // The token of a program stays one, and that of a person does not become one.
        let isProgram = token.role == AccessRole.registrar.rawValue
        change = Change(
            address: "/people/\(token.id)/change",
            roles: FormChoice.roles(
                AccessRole.allCases.filter { isProgram || $0 != .registrar }, chosen: token.role),
            apps: FormChoice.apps(topics, chosen: token.topic))
    }
}

extension PageRequest {
    /// The beginning of this server's addresses, as the browser knows them.
    fileprivate var ownOrigin: String {
        let scheme = request.header("X-Forwarded-Proto")?.lowercased() == "https" ? "https" : "http"
        return "\(scheme)://\(request.head.authority ?? "localhost")"
    }
}

extension AccessRole {
    /// The description of a role, for the form and for the guide's reference.
    package var about: String {
        switch self {
        case .viewer: "reads everything, and changes nothing"
        case .author: "writes campaigns and segments, plans them, tests them on one device, and asks for approval"
        case .sender: "asks for approval, and starts, pauses, resumes and cancels runs"
        case .approver: "approves plans, and stops runs"
        case .admin: "everything"
        case .registrar: "the app’s backend: registers and removes devices, reports events, sees nothing else"
        }
    }
}
