import ArgumentParser
import Engine
import Foundation
import Logging
import Model
import Storage
import WebClient

extension WebhookCourier {
    /// How long a command that is done waits for webhooks; the next process goes on with the rest.
    static let lastWait: Duration = .seconds(10)

    /// Registers the configured webhooks, so that what happens to runs from now on is kept for them. To be called before
    /// anything does; throws ``Failure`` for a secret that cannot be read.
    static func registered(_ configuration: Configuration, _ store: Store, logger: Logger) async throws
        -> WebhookCourier
    {
        var signatures: [String: WebhookSignature] = [:]
        for hook in configuration.webhooks {
            signatures[hook.url] = WebhookSignature(secret: try WebhookSecret.read(hook.secretPath))
        }
        try await store.setWebhooks(configuration.webhooks)
        return WebhookCourier(
            store: store, signatures: signatures, web: .webhooks, clock: .system,
            chance: { Double.random(in: 0...1) }, logger: logger)
    }
}

extension HTTPClient {
    static let feeds = HTTPClient(agent: agent)

    /// A receiver that takes longer than this has its message again.
    static let webhooks: HTTPClient = {
        var limits = WebLimits()
        limits.totalTime = .seconds(10)
        limits.connectTime = .seconds(5)
        limits.bodyBytesMax = 1 << 20
        return HTTPClient(limits: limits, agent: agent)
    }()

    private static var agent: String { "fanfare/\(Fanfare.configuration.version)" }
}

enum WebhookSecret {
    private static let bytesMin = 16

    /// The file's text without surrounding blanks; behind `whsec_` it is base64, as Standard Webhooks has it.
    static func read(_ path: String) throws -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw Failure(
                .configuration, "cannot read the webhook's secret \(path); check the path and its permissions")
        }
        let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        let prefix = "whsec_"
        let secret =
            text.hasPrefix(prefix)
            ? Data(base64Encoded: String(text.dropFirst(prefix.count))).map { Array($0) } ?? [] : Array(text.utf8)
        guard secret.count >= bytesMin else {
            throw Failure(
                .configuration,
                "\(path) holds no secret of at least \(bytesMin) bytes; make one with `openssl rand -hex 32 > \(path)`")
        }
        return secret
    }
}
