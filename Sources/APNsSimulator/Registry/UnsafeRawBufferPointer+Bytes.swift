import Glibc

extension UnsafeRawBufferPointer {
    func isEqual(to other: [UInt8]) -> Bool {
        guard count == other.count else { return false }
        guard let baseAddress else { return true }
        return memcmp(baseAddress, other, count) == 0
    }

    func hasPrefix(_ other: [UInt8]) -> Bool {
        guard count >= other.count, let baseAddress else { return other.isEmpty }
        return memcmp(baseAddress, other, other.count) == 0
    }
}
