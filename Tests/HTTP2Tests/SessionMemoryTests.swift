import CNGHTTP2
import Testing

@testable import HTTP2

@Suite struct `Memory for sessions` {
    private let memory = SessionMemory()

    private func take(_ size: Int) throws -> UnsafeMutableRawPointer {
        let functions = memory.functions
        return try #require(functions.malloc(size, functions.mem_user_data))
    }

    private func giveBack(_ pointer: UnsafeMutableRawPointer?) {
        let functions = memory.functions
        functions.free(pointer, functions.mem_user_data)
    }

    @Test func `a block given back serves the next request of its size`() throws {
        let first = try take(100)
        let other = try take(100)
        #expect(first != other)
        giveBack(first)
        #expect(try take(90) == first)
        let larger = try take(600)
        #expect(larger != first)
        giveBack(larger)
        giveBack(first)
        giveBack(other)
        giveBack(nil)
    }

    @Test(arguments: [1, 48, 49, 1000, 1008, 1009, 40_000]) func `growing keeps what is there`(size: Int) throws {
        let functions = memory.functions
        var pointer = try take(size)
        for offset in 0..<size {
            pointer.storeBytes(of: UInt8(truncatingIfNeeded: offset), toByteOffset: offset, as: UInt8.self)
        }
        for factor in [1, 2, 30] {
            pointer = try #require(functions.realloc(pointer, size * factor, functions.mem_user_data))
            #expect(
                (0..<size).allSatisfy {
                    pointer.load(fromByteOffset: $0, as: UInt8.self) == UInt8(truncatingIfNeeded: $0)
                })
        }
        #expect(Int(bitPattern: pointer) % 16 == 0)
        giveBack(pointer)
    }

    @Test func `cleared memory is clear even when it was used before, and no size overflows`() throws {
        let functions = memory.functions
        let used = try take(200)
        used.initializeMemory(as: UInt8.self, repeating: 0xff, count: 200)
        giveBack(used)
        let clear = try #require(functions.calloc(50, 4, functions.mem_user_data))
        #expect(clear == used)
        #expect((0..<200).allSatisfy { clear.load(fromByteOffset: $0, as: UInt8.self) == 0 })
        #expect(functions.calloc(.max, 2, functions.mem_user_data) == nil)
        giveBack(clear)
    }
}
