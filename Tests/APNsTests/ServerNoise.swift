/// What a broken or hostile server may say: right frames for the most part, spoiled in every way.
struct ServerNoise: RandomNumberGenerator {
    private var state: UInt64
    private var nextStream: Int32 = 1

    init(seed: UInt64) {
        state = seed &* 0x9e37_79b9_7f4a_7c15
    }

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ state >> 29
    }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    private mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(below(256)) } }

    var endsNow: Bool {
        mutating get { below(12) == 0 }
    }

    /// The first bytes of a connection.
    mutating func opening() -> [UInt8] {
        switch below(8) {
        case 0: return bytes(1 + below(400))
        case 1: return []
        case 2: return spoiled(Frame.settings((3, UInt32(below(200))), (4, UInt32(below(70_000)))).bytes)
        default: return Frame.settings((3, UInt32(1 + below(200)))).bytes
        }
    }

    /// A handful of frames, mostly answers to the streams a client would have open.
    mutating func answers() -> [UInt8] {
        var said: [UInt8] = []
        for _ in 0..<1 + below(12) {
            let frame = frame().bytes
            said += below(6) == 0 ? spoiled(frame) : frame
        }
        return said
    }

    private mutating func frame() -> Frame {
        let stream = stream()
        switch below(20) {
        case 0: return Frame(UInt8(below(16)), flags: UInt8(below(256)), stream: stream, bytes(below(80)))
        case 1: return .goAway(lastStream: stream, code: UInt32(below(16)), #"{"reason":"Shutdown"}"#)
        case 2: return .reset(stream, code: UInt32(below(16)))
        case 3: return .settings((UInt16(below(8)), UInt32(truncatingIfNeeded: next())))
        case 4: return .settings((3, UInt32(below(4))))
        case 5: return Frame(.windowUpdate, stream: below(2) == 0 ? 0 : stream, bytes(4))
        case 6: return Frame(.ping, flags: UInt8(below(2)), bytes(8))
        case 7: return .data(Array(#"{"reason":"BadDeviceToken"}"#.utf8), on: stream, ends: below(2) == 0)
        case 8: return Frame(.pushPromise, flags: Frame.endHeaders, stream: stream, [0, 0, 0, 2] + [0x88])
        case 9: return Frame(.headers, flags: Frame.endHeaders | 1, stream: stream, bytes(below(60)))
        case 10: return .status(100 + below(500), on: stream, ends: false)
        default: return .status(below(4) == 0 ? 400 : 200, on: stream)
        }
    }

    /// Forward through the odd numbers, with slips.
    private mutating func stream() -> Int32 {
        if below(10) == 0 { return Int32(below(64)) }
        defer { nextStream &+= 2 }
        return nextStream & .max
    }

    private mutating func spoiled(_ right: [UInt8]) -> [UInt8] {
        var bytes = right
        guard !bytes.isEmpty else { return bytes }
        switch below(4) {
        case 0: bytes[below(bytes.count)] ^= 1 << UInt8(below(8))
        case 1: bytes.removeLast(below(bytes.count))
        case 2: bytes.insert(contentsOf: self.bytes(1 + below(8)), at: below(bytes.count))
        default: bytes.replaceSubrange(below(bytes.count)..., with: self.bytes(below(40)))
        }
        return bytes
    }
}
