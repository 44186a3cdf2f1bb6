import APNs
import ArgumentParser
import Foundation
import Logging

enum TransportKind: String, ExpressibleByArgument, CaseIterable {
    case native
    case curl
    /// No network: what everything but the transport costs.
    case instant

    static var list: String { allCases.map(\.rawValue).joined(separator: ", ") }

    /// With a key of its own: a server that accepts everything looks at no credential.
    func make(trust: String?) throws -> any Transport {
        let key = try SigningKey(pem: try SigningKey.generatedPEM())
        let tokens = ProviderTokenSource(
            key: key, teamID: "BENCHTEAM1", keyID: "BENCHKEY01",
            now: { Int64(Date().timeIntervalSince1970 * 1000) })
        switch self {
        case .native:
            return NativeTransport(
                credential: .token(tokens), limits: LaneLimits(), trust: trust, logger: Logger(label: "bench"))
        case .curl:
            return CurlTransport(
                credential: .token(tokens), limits: LaneLimits(), trust: trust, logger: Logger(label: "bench"))
        case .instant: return InstantTransport()
        }
    }
}
