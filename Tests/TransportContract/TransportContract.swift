package import APNs

/// What every transport promises, one method for each promise, written against ``Transport`` and ``Lane`` alone: a
/// suite calls each with every transport there is.
///
/// The promises stand in `Sending`, `Starting`, `Responses`, `Trouble` and `Faults`.
package struct TransportPromises: Sendable {
    package let kind: TransportKind

    package init(_ kind: TransportKind) {
        self.kind = kind
    }
}

/// A kind of transport under test; every kind passes the same suites.
package struct TransportKind: Sendable, CustomStringConvertible {
    package var description: String
    /// libcurl tells no streams apart and does not say what it has written. With it, and there alone:
    /// - what is in flight when a connection ends, or when GOAWAY or REFUSED_STREAM comes, may end as unknown;
    /// - a silent connection is noticed by deadlines, for there is no PING;
    /// - the reason of a GOAWAY is not known.
    package var knowsStreams: Bool
    package var make: @Sendable (PushCredential, LaneLimits, _ trust: String?) -> any Transport

    package init(
        description: String, knowsStreams: Bool,
        make: @escaping @Sendable (PushCredential, LaneLimits, _ trust: String?) -> any Transport
    ) {
        self.description = description
        self.knowsStreams = knowsStreams
        self.make = make
    }
}
