import CNGHTTP2
import Glibc

/// Puts `authorization` into the peer's header table, which nghttp2 never does: a provider token is the same for
/// thousands of requests, and Apple asks for it to be indexed (`ProviderProtocol` section 4). Sent in full each time it
/// would be the largest part of every request.
///
/// nghttp2 is given a name that it does not know, with as many letters and, in Huffman code, as many bits; in the frame
/// on its way out the name is set right. Both sides count the same bytes for the entry, and later requests refer to it
/// by its number.
enum IndexedAuthorization {
    static let name = "authorization"
    static let standIn = "authorizatiom"

    /// RFC 7541 section 6.2.1: a literal that enters the table, with a new name of 9 bytes in Huffman code: the stand-in.
    private static let literal: [UInt8] = [0x40, 0x89, 0x1d, 0xa9, 0x9c, 0xf6, 0x1b, 0xd8, 0xd2, 0x63, 0xd3]
    /// The last byte of the true name in Huffman code: where they differ.
    private static let lastByte: UInt8 = 0xd5
    private static let frameHeadBytes = 9

    /// `chunk` holds one frame with its head; of HEADERS only such a literal is changed.
    static func reveal(in chunk: UnsafeMutableRawBufferPointer) {
        guard chunk.count > frameHeadBytes + literal.count, chunk[3] == UInt8(NGHTTP2_HEADERS.rawValue) else { return }
        guard let start = chunk.baseAddress else { return }
        var place = frameHeadBytes
        while let found = memchr(start + place, Int32(literal[0]), chunk.count - place) {
            place = UnsafeRawPointer(found) - UnsafeRawPointer(start)
            guard place + literal.count <= chunk.count else { return }
            if memcmp(found, literal, literal.count) == 0 {
                chunk[place + literal.count - 1] = lastByte
                return
            }
            place += 1
        }
    }
}
