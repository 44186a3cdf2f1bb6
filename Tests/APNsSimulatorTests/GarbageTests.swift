import APNsSimulator
import Model
import Foundation
import Testing
import TestSupport

extension SimulatorTests {
    /// Whatever comes in, the simulator goes on serving the others.
    @Suite struct Garbage {
        private struct Noise: RandomNumberGenerator {
            private var generator: SeededGenerator

            init(seed: UInt64) {
                generator = SeededGenerator(seed: seed)
            }

            mutating func next() -> UInt64 { generator.next() }

            mutating func bytes(_ count: Int) -> [UInt8] {
                (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
            }

            /// A frame with a head that may be true: right length, known type mostly, small stream.
            mutating func frame() -> [UInt8] {
                let body = bytes(Int.random(in: 0...64, using: &self))
                let length =
                    Int.random(in: 0..<8, using: &self) == 0 ? Int.random(in: 0...40_000, using: &self) : body.count
                let type = UInt8.random(in: 0...11, using: &self)
                let stream = UInt8.random(in: 0...9, using: &self)
                let flags = UInt8.random(in: 0...255, using: &self)
                return [0, UInt8(length >> 8), UInt8(length & 255), type, flags, 0, 0, 0, stream] + body
            }
        }

        /// So many rounds, or as long as FANFARE_FUZZ_SECONDS says, then each time with other bytes.
        private struct Rounds: Sequence, IteratorProtocol {
            private static let seconds = ProcessInfo.processInfo.environment["FANFARE_FUZZ_SECONDS"].flatMap(Int.init)

            private let count: Int
            private let deadline = Self.seconds.map { ContinuousClock.now + .seconds($0) }
            private var round = 0

            init(_ count: Int) {
                self.count = count
            }

            mutating func next() -> Int? {
                if let deadline {
                    guard ContinuousClock.now < deadline else { return nil }
                } else {
                    guard round < count else { return nil }
                }
                defer { round += 1 }
                return round
            }

            static func noise(_ seed: UInt64) -> Noise {
                let seed = seconds == nil ? seed : UInt64.random(in: .min ... .max)
                if seconds != nil { print("noise begins with \(seed)") }
                return Noise(seed: seed)
            }
        }

        /// A simulator that misbehaves as well.
        private func faultyFixture() throws -> Fixture {
            try Fixture { options, _ in
                options.answerDelayMs = 1
                options.streamsBeforeAcceptance = 1000
                options.faults = [
                    .answerLost(.rate(0.05)), .answerLost(.rate(0.05), by: .reset(code: 8)),
                    .answerLost(.rate(0.02), by: .silentConnection),
                    FaultRule(when: .rate(0.05), action: .refuseStream),
                    FaultRule(when: .rate(0.05), action: .goAway(lastStream: .middle, reason: "Shutdown")),
                    FaultRule(when: .rate(0.05), action: .goAway(lastStream: .none, reason: nil, isTwice: true)),
                    FaultRule(when: .rate(0.05), action: .goAway(lastStream: .all, reason: nil, closes: true)),
                    FaultRule(when: .rate(0.05), action: .cutAnswer), FaultRule(when: .rate(0.05), action: .silence),
                    FaultRule(when: .rate(0.05), action: .streamLimit(1, forMilliseconds: 1)),
                    FaultRule(when: .rate(0.05), action: .delay(milliseconds: 3)),
                    FaultRule(when: .rate(0.05), action: .page(status: 502, body: "<html>")),
                ]
            }
        }

        @Test func `right requests with bytes turned over, at a simulator that misbehaves`() throws {
            let fixture = try faultyFixture()
            var noise = Rounds.noise(5)
            let request = try fixture.push()
            for _ in Rounds(400) {
                let client = try fixture.client()
                try client.forgetStreamLimit()
                for _ in 0..<10 { client.submit(request) }
                try client.writeSpoiled { bytes in
                    guard Int.random(in: 0..<8, using: &noise) == 0 else { return }
                    bytes[Int.random(in: 0..<bytes.count, using: &noise)] ^= 1 << UInt8.random(in: 0..<8, using: &noise)
                }
            }
            fixture.simulator.setFaults([])
            try expectAlive(fixture)
            try fixture.simulator.wait { $0.openConnections <= 1 }
            let counts = fixture.simulator.counts()
            #expect(counts.requests == fixture.simulator.log().count)
            #expect(counts.accepted == fixture.simulator.log().count { $0.status == 200 })
            #expect(counts.lostAnswers == fixture.simulator.log().count(where: \.isAnswerLost))
        }

        private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        private static let emptySettings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]

        private func expectAlive(_ fixture: Fixture) throws {
            #expect(try fixture.client().answer(to: fixture.push()).status == 200)
        }

        @Test func `bytes that are no TLS`() throws {
            let fixture = try Fixture()
            var noise = Rounds.noise(1)
            for round in Rounds(1500) {
                let descriptor = try TLSClientStream.connect(to: fixture.simulator.port(for: .production))
                var bytes = noise.bytes(Int.random(in: 0...300, using: &noise))
                // Sometimes the beginning of a TLS record with a ClientHello.
                if round.isMultiple(of: 3) { bytes = [22, 3, 1, 0, UInt8(bytes.count & 255), 1] + bytes }
                _ = Foundation.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
                close(descriptor)
            }
            try expectAlive(fixture)
        }

        @Test func `bytes that are no HTTP/2`() throws {
            let fixture = try Fixture()
            var noise = Rounds.noise(2)
            var connects = 0
            for round in Rounds(300) {
                connects += 1
                let stream = try TLSClientStream(
                    port: fixture.simulator.port(for: .production), trusting: fixture.simulator.authorityPath)
                let head = round.isMultiple(of: 2) ? Self.preface : []
                try send(head + noise.bytes(Int.random(in: 1...600, using: &noise)), over: stream)
            }
            try expectAlive(fixture)
            #expect(fixture.simulator.counts().connections == connects + 1)
        }

        @Test func `frames without sense`() throws {
            let fixture = try Fixture()
            var noise = Rounds.noise(3)
            for _ in Rounds(500) {
                let stream = try TLSClientStream(
                    port: fixture.simulator.port(for: .production), trusting: fixture.simulator.authorityPath)
                let frames = (0..<Int.random(in: 1...20, using: &noise)).flatMap { _ in noise.frame() }
                try send(Self.preface + Self.emptySettings + frames, over: stream)
            }
            try expectAlive(fixture)
        }

        @Test func `a right connection with some bytes turned over`() throws {
            let fixture = try Fixture()
            var noise = Rounds.noise(4)
            let request = try fixture.push()
            for _ in Rounds(500) {
                let client = try fixture.client()
                for _ in 0..<3 { client.submit(request) }
                try client.writeSpoiled { bytes in
                    bytes[Int.random(in: 0..<bytes.count, using: &noise)] ^= 1 << UInt8.random(in: 0..<8, using: &noise)
                }
            }
            try expectAlive(fixture)
        }

        @Test func `floods of pings and resets end or are borne`() throws {
            let fixture = try Fixture()
            let stream = try TLSClientStream(
                port: fixture.simulator.port(for: .production), trusting: fixture.simulator.authorityPath)
            let ping: [UInt8] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
            try send(Self.preface + Self.emptySettings, over: stream)
            for _ in 0..<2000 {
                do { try send(Array(repeatElement(ping, count: 20).joined()), over: stream) } catch { break }
            }
            try expectAlive(fixture)
        }

        private func send(_ bytes: [UInt8], over stream: TLSClientStream) throws {
            try bytes.withUnsafeBytes { try stream.write($0) }
        }
    }
}
