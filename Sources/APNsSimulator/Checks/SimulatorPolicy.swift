/// The part of the options that requests are judged by; does not change while the simulator runs.
struct SimulatorPolicy: Sendable {
    let acceptsAll: Bool
    let keys: [String: VerificationKey]
    let isLenientWithTokens: Bool
    let tokenClockSkewSeconds: Int
    let tokenUpdatesTolerated: Int
    let acceptsUnknownTokens: Bool
    let payloadBytesMax: Int
    let voipPayloadBytesMax: Int
    let headerListBytesMax: Int
    let streamsMax: Int
    let streamsBeforeAcceptance: Int
    let asksForCertificate: Bool
    private let clock: @Sendable () -> Int64
    private let clockOffsetMs: Int64

    init(_ options: SimulatorOptions) throws(SimulatorError) {
        if case .acceptAll = options.mode { acceptsAll = true } else { acceptsAll = false }
        if case .accept = options.unknownTokens { acceptsUnknownTokens = true } else { acceptsUnknownTokens = false }
        if case .notAsked = options.clientCertificates { asksForCertificate = false } else { asksForCertificate = true }
        var keys: [String: VerificationKey] = [:]
        for key in options.keys { keys[key.keyID] = try VerificationKey(key) }
        self.keys = keys
        isLenientWithTokens = options.isLenientWithTokens
        tokenClockSkewSeconds = options.tokenClockSkewSeconds
        tokenUpdatesTolerated = options.tokenUpdatesTolerated
        payloadBytesMax = options.payloadBytesMax
        voipPayloadBytesMax = options.voipPayloadBytesMax
        headerListBytesMax = options.headerListBytesMax
        streamsMax = options.streamsMax
        streamsBeforeAcceptance = options.streamsBeforeAcceptance
        clock = options.clock
        clockOffsetMs = options.clockOffsetMs
    }

    /// Milliseconds since 1970, as the simulated service sees it.
    func nowMs() -> Int64 { clock() + clockOffsetMs }
}
