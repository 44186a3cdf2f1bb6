import Model

extension ValueDecoder where Value == CampaignFeedback? {
    /// `true`, or `{arrivals: 1%}`.
    static var feedback: ValueDecoder {
        let flag = ValueDecoder<Bool>.boolean
        let settings = ValueDecoder<CampaignFeedback>.object(CampaignKeys.Feedback.shape) { reader in
            CampaignFeedback(arrivalsPercent: reader[CampaignKeys.Feedback.arrivals])
        }
        return ValueDecoder(shape: .either([flag.shape, settings.shape])) { field in
            guard case .object = field.node.content else {
                return flag.read(field).map { $0 ? CampaignFeedback() : nil }
            }
            return settings.read(field)
        }
    }
}

extension ValueDecoder where Value == Conversion {
    static var conversion: ValueDecoder {
        .object(CampaignKeys.Conversion.shape) { reader in
            let within = reader[CampaignKeys.Conversion.within] ?? Conversion.withinDefault
            return reader[CampaignKeys.Conversion.event].map { Conversion(event: $0, within: within) }
        }
    }
}
