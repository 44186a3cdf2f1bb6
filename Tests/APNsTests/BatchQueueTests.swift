import Platform
import Testing

@testable import APNs

@Suite struct `The queue of a lane` {
    private static func batch(_ tags: Range<Int64>) -> PushBatch {
        PushBatch(
            headers: PushHeaders(topic: "t", pushType: "alert", priority: 10),
            pushes: tags.map { Push(tag: $0, id: PushID(high: 0, low: UInt64($0)), token: [1], payload: [2]) })
    }

    @Test func `gives pushes in order, those given back first`() throws {
        var queue = BatchQueue()
        queue.append([Self.batch(0..<2), Self.batch(2..<2), Self.batch(2..<4)])
        let next = queue.next()
        let first = try #require(next)
        #expect(first.tag == 0 && queue.count == 3)
        #expect(queue.next()?.tag == 1)
        queue.requeue(first)
        #expect(queue.count == 3)
        var tags: [Int64] = []
        while let entry = queue.next() { tags.append(entry.tag) }
        #expect(tags == [0, 2, 3])
        #expect(queue.count == 0)
    }

    @Test func `forgets a batch that is through, although it never runs empty`() throws {
        var queue = BatchQueue()
        queue.append([Self.batch(0..<2)])
        weak let first = queue.next()?.batch
        #expect(first != nil)
        for tag: Int64 in 1..<100 {
            queue.append([Self.batch(2 * tag..<2 * tag + 2)])
            _ = queue.next()
            _ = queue.next()
            #expect(queue.count == 1)
        }
        #expect(first == nil)
    }
}
