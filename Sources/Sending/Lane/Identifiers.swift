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

/// What tells one content from another, on record with whatever was made from it.
package enum ContentHash {
    /// SHA-256 in hex, as `sha256sum` prints it.
    package static func sha256(_ bytes: [UInt8]) -> String {
        Digest.sha256(bytes).map { String(0x100 + Int($0), radix: 16).dropFirst() }.joined()
    }
}
