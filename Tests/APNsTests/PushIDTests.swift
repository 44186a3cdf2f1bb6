import Platform
import Testing

@testable import APNs

struct PushIDTests {
    struct Vector: Sendable {
        var namespace: PushID
        var run: Int64
        var device: Int64
        var generation: Int
        var text: String
    }

    // Python: digest = hashlib.sha1(namespace.bytes + struct.pack(">qqq", run, device, generation)).digest()
    //         uuid.UUID(bytes=digest[:16], version=5), which is what uuid.uuid5 does for text.
    static let vectors = [
        Vector(
            namespace: PushID(high: 0, low: 0), run: 0, device: 0, generation: 0,
            text: "b80de5d1-3875-5541-85f0-5265ad144ab9"),
        Vector(
            namespace: PushID(high: 0x6ba7_b810_9dad_11d1, low: 0x80b4_00c0_4fd4_30c8), run: 1, device: 42,
            generation: 1, text: "14a562a0-0779-5a3f-bfb3-7dd9abdb162a"),
        Vector(
            namespace: PushID(high: 0x6ba7_b810_9dad_11d1, low: 0x80b4_00c0_4fd4_30c8), run: .max, device: -1,
            generation: 7, text: "a164013e-c01a-5eb6-9cff-07dcad33a31a"),
    ]

    @Test(arguments: vectors)
    func `an id is the UUID version 5 of run, device and generation`(row: Vector) {
        let id = PushIDSpace(namespace: row.namespace)
            .id(run: row.run, device: row.device, generation: row.generation)
        #expect(id.description == row.text)
        #expect(id.utf8 == Array(row.text.utf8))
    }

    @Test func `neighbours have different ids, each lower case with version 5 and the RFC variant`() {
        let space = PushIDSpace(namespace: PushID(high: 1, low: 2))
        var seen = Set<PushID>()
        for run in Int64(1)...10 {
            for device in Int64(1)...100 {
                for generation in 1...2 {
                    let id = space.id(run: run, device: device, generation: generation)
                    seen.insert(id)
                    let text = Array(id.description)
                    #expect(text[14] == "5" && "89ab".contains(text[19]))
                    #expect(id.description == id.description.lowercased())
                }
            }
        }
        #expect(seen.count == 2000)
    }
}
