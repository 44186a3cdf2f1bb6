import CNGHTTP2
import Testing

@testable import HTTP2

struct AuthorizationIndexingTests {
    /// What a peer reads from a header block that nghttp2 wrote with the stand-in and that was then revealed.
    ///
    /// - Parameter tables: the size that the peer's SETTINGS allow before each request; `nil`: as before.
    private func roundTrip(_ values: [String], tables: [Int?] = []) throws -> [[String: String]] {
        var deflater: OpaquePointer?
        var inflater: OpaquePointer?
        try #require(nghttp2_hd_deflate_new(&deflater, 4096) == 0 && nghttp2_hd_inflate_new(&inflater) == 0)
        defer {
            nghttp2_hd_deflate_del(deflater)
            nghttp2_hd_inflate_del(inflater)
        }
        return try values.enumerated().map { index, value in
            if let table = tables.indices.contains(index) ? tables[index] : nil {
                nghttp2_hd_inflate_change_table_size(inflater, table)
                nghttp2_hd_deflate_change_table_size(deflater, table)
            }
            let fields = RequestFields([
                .init(":method", Array("POST".utf8)), .init("authorization", Array(value.utf8)),
                .init("x-topic", Array("com.example.wendercast".utf8)),
            ])
            var block = [UInt8](repeating: 0, count: 1024)
            let pairs = fields.leading + fields.trailing
            let count = nghttp2_hd_deflate_hd(deflater, &block, block.count, pairs, pairs.count)
            try #require(count > 0)
            var frame =
                [0, 0, UInt8(count & 255), UInt8(NGHTTP2_HEADERS.rawValue), 4, 0, 0, 0, 1] + block.prefix(count)
            frame.withUnsafeMutableBytes { AuthorizationIndexing.reveal(in: $0) }
            return try inflate(Array(frame.dropFirst(9)), inflater)
        }
    }

    private func inflate(_ block: [UInt8], _ inflater: OpaquePointer?) throws -> [String: String] {
        var found: [String: String] = ["(bytes)": "\(block.count)"]
        var rest = block
        while true {
            var pair = nghttp2_nv()
            var flags: Int32 = 0
            let count = nghttp2_hd_inflate_hd2(inflater, &pair, &flags, rest, rest.count, 1)
            try #require(count >= 0)
            rest.removeFirst(count)
            if UInt32(flags) & NGHTTP2_HD_INFLATE_EMIT.rawValue != 0 {
                let name = UnsafeBufferPointer(start: pair.name, count: pair.namelen)
                let value = UnsafeBufferPointer(start: pair.value, count: pair.valuelen)
                found[String(decoding: name, as: UTF8.self)] = String(decoding: value, as: UTF8.self)
            }
            if UInt32(flags) & NGHTTP2_HD_INFLATE_FINAL.rawValue != 0 { break }
        }
        nghttp2_hd_inflate_end_headers(inflater)
        return found
    }

    @Test func `the peer reads authorization, in full once and then by its number`() throws {
        let token = "bearer " + String(repeating: "aZ09-_.", count: 27)
        let other = "bearer " + String(repeating: "bY18-_.", count: 27)
        let read = try roundTrip([token, token, other, other, token])
        #expect(read.map { $0["authorization"] } == [token, token, other, other, token])
        #expect(read.allSatisfy { $0[AuthorizationIndexing.standIn] == nil })
        let sizes = read.map { Int($0["(bytes)"] ?? "") ?? 0 }
        #expect(sizes.map { $0 > 100 } == [true, false, true, false, false])
    }

    @Test(arguments: [0, 1, 32, 64, 128, 256, 300, 326, 512, 1024, 4096, 65_536])
    func `the peer reads authorization whatever its table holds`(size: Int) throws {
        let tokens = [20, 30, 100].map { "bearer " + String(repeating: "aZ09-_.", count: $0) }
        let read = try roundTrip(tokens + tokens.reversed(), tables: [size])
        #expect(read.map { $0["authorization"] } == tokens + tokens.reversed())
        #expect(read.allSatisfy { $0[AuthorizationIndexing.standIn] == nil })
    }

    @Test func `the peer reads authorization while its table grows and shrinks`() throws {
        let token = "bearer " + String(repeating: "aZ09-_.", count: 27)
        let sizes: [Int?] = [4096, nil, 0, nil, 4096, nil, 256, 100, 4096, nil]
        let read = try roundTrip(sizes.map { _ in token }, tables: sizes)
        #expect(read.allSatisfy { $0["authorization"] == token && $0[AuthorizationIndexing.standIn] == nil })
    }

    @Test func `a field indexed for its name enters the table with the first request of a connection only`() {
        let policies: [FieldIndexing] = [.indexed, .nameOnly, .literal]
        let request = ClientRequest(number: 0, ownFields: policies.map { (":path", $0) })
        request.use(RequestFields([.init(":method", Array("POST".utf8)), .init("x-once", [1], indexing: .literal)]))
        func isIndexed(isFirst: Bool) -> [Bool] {
            request.setOwnIndexed(isFirst: isFirst)
            return (0..<5).map { UInt32(request.values[$0].flags) & NGHTTP2_NV_FLAG_NO_INDEX.rawValue == 0 }
        }
        #expect(isIndexed(isFirst: true) == [true, true, true, false, false])
        #expect(isIndexed(isFirst: false) == [true, true, false, false, false])
    }

    @Test func `frames of other kinds are left alone`() {
        var frame =
            [UInt8](repeating: 0, count: 9) + [0x40, 0x89, 0x1d, 0xa9, 0x9c, 0xf6, 0x1b, 0xd8, 0xd2, 0x63, 0xd3, 0]
        let before = frame
        frame.withUnsafeMutableBytes { AuthorizationIndexing.reveal(in: $0) }
        #expect(frame == before)
    }
}
