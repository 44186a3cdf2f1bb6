import APNs

/// The `apns-id` of a delivery, for whoever knows no transport.
package enum DeliveryID {
    /// - Parameter namespace: the store's.
    package static func text(namespace: (high: UInt64, low: UInt64), run: Int64, device: Int64, generation: Int)
        -> String
    {
        PushIDSpace(namespace: PushID(high: namespace.high, low: namespace.low))
            .id(run: run, device: device, generation: generation).description
    }
}
