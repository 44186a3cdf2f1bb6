/// An `apns-id` made by the simulator: a random UUID of version 4 in lower case.
struct MessageID: Hashable, Sendable {
    static let characters = 36

    private let high: UInt64
    private let low: UInt64

    init(using generator: inout SplitMix64) {
        high = generator.next() & ~0xf000 | 0x4000
        low = generator.next() & ~(0b11 << 62) | 0b10 << 62
    }

    /// `room` holds 36 bytes.
    func write(to room: UnsafeMutableRawBufferPointer) {
        var place = 0
        for index in 0..<32 {
            if index == 8 || index == 12 || index == 16 || index == 20 {
                room[place] = UInt8(ascii: "-")
                place += 1
            }
            let word = index < 16 ? high : low
            room[place] = Hex.digit(UInt8(truncatingIfNeeded: word >> UInt64(60 - 4 * (index % 16))) & 15)
            place += 1
        }
    }

    var text: String {
        String(unsafeUninitializedCapacity: Self.characters) { room in
            write(to: UnsafeMutableRawBufferPointer(room))
            return Self.characters
        }
    }
}
