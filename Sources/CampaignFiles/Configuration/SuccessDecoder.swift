import Model

extension ConfigurationKeys {
    enum Success {
        static let minAccepted = Key(
            "min_accepted", .integer(0...Int.max),
            "The minimum number of accepted deliveries for success (default: 1; 0: a run may reach no device).")
        static let maxRejected = Key(
            "max_rejected", .percent(0...100), "The largest share of rejected deliveries (default: 50%).")
        static let maxUnknown = Key(
            "max_unknown", .percent(0...100), "The largest share of deliveries that end unknown (default: 50%).")
        static let shape = ObjectShape(
            "success", "When a finished run counts as unsuccessful.",
            [minAccepted.shape, maxRejected.shape, maxUnknown.shape])
    }
}

extension ValueDecoder where Value == Configuration.SuccessLimits {
    static var successLimits: ValueDecoder {
        .object(ConfigurationKeys.Success.shape) { reader in
            var limits = Configuration.SuccessLimits()
            limits.minAccepted = reader[ConfigurationKeys.Success.minAccepted] ?? limits.minAccepted
            limits.maxRejectedPercent = reader[ConfigurationKeys.Success.maxRejected] ?? limits.maxRejectedPercent
            limits.maxUnknownPercent = reader[ConfigurationKeys.Success.maxUnknown] ?? limits.maxUnknownPercent
            return limits
        }
    }
}
