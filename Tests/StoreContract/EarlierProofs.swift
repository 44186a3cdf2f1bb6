/// Devices of a store whose version gave each proven token a row.
package struct EarlierProofs: Hashable, Sendable {
    package let id: Int64
    package let generation: Int
    /// The last generation that is proven, 0 if none is.
    package let proven: Int

    package var isProven: Bool { generation == proven }

    private init(_ id: Int64, _ generation: Int, _ proven: Int) {
        (self.id, self.generation, self.proven) = (id, generation, proven)
    }

    package static let devices = [
        EarlierProofs(1, 1, 1), EarlierProofs(2, 1, 0), EarlierProofs(62, 2, 1), EarlierProofs(63, 1, 1),
        EarlierProofs(64, 2, 2), EarlierProofs(65, 1, 1), EarlierProofs(127, 1, 1), EarlierProofs(128, 3, 2),
        EarlierProofs(191, 1, 1), EarlierProofs(100_000, 1, 1),
    ]
}
