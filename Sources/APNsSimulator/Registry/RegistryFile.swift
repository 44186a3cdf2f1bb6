import FoundationEssentials

extension SimulatorRegistry {
    /// A line of a registry file.
    private struct Line: Decodable {
        var token: String
        var environment: SimulatorEnvironment
        var topic: String
        var gone_since: Int64?
        var delay_ms: Int?
    }

    /// Reads JSON Lines, a token each:
    /// `{"token":"hex","environment":"production","topic":"...","gone_since":ms,"delay_ms":n}`, the last two optional.
    /// Stops at the first bad line.
    package static func load(_ path: String) throws -> SimulatorRegistry {
        var registry = SimulatorRegistry()
        let decoder = JSONDecoder()
        try LineReader.forEachLine(of: path) { number, bytes in
            let line: Line
            do {
                line = try decoder.decode(Line.self, from: Data(bytes))
            } catch {
                throw SimulatorError.malformedLine(path: path, line: number, reason: "not a token's registration")
            }
            guard let token = Hex.bytes(of: line.token), DeviceTokenShape.byteCounts.contains(token.count) else {
                throw SimulatorError.malformedLine(
                    path: path, line: number, reason: "the token is not hex of 32 to 100 bytes")
            }
            guard registry.topics.count < Self.topicsMax else {
                throw SimulatorError.malformedLine(path: path, line: number, reason: "too many different topics")
            }
            registry.register(
                token: token, environment: line.environment, topic: line.topic, goneSince: line.gone_since,
                delayMs: line.delay_ms ?? 0)
        }
        return registry
    }
}
