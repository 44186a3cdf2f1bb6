import Foundation
import HTTPTypes
import Hummingbird

/// The form in the foot of every page that sets the zone of the times. The script sets the browser's own zone at the
/// first visit.
struct ZonePages: Sendable {
    var routes: [PageRoute] { [.post("/zone", nil, choose)] }

    private static let keptSeconds = 400 * 86_400

    @Sendable private func choose(_ request: PageRequest) async throws -> Response {
        let name = try await request.form()["zone", default: ""].trimmingCharacters(in: .whitespaces)
        guard let zone = ViewerZone.named(name) else {
            throw Problem.invalid(
                parameter: "zone",
                "There is no time zone of this name. Give a name such as Europe/Berlin, America/New_York or UTC.")
        }
        let cookie = Cookie(
            name: ViewerZone.cookie, value: ViewerZone.name(of: zone), maxAge: Self.keptSeconds, path: "/",
            httpOnly: false, sameSite: .lax)
        return PageRequest.seeOther(request.referringPage ?? "/", cookie: cookie)
    }
}
