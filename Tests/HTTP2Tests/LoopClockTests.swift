import Platform
import Synchronization
import Testing

@testable import HTTP2

private let second: UInt64 = 1_000_000_000

@Suite struct `The clock of a loop` {
    /// In steps that a working loop makes.
    private func run(_ clock: inout LoopClock, from start: UInt64, for length: UInt64) -> UInt64 {
        var moment = start
        while moment < start + length {
            moment += second / 2
            clock.advance(to: moment)
        }
        return moment
    }

    @Test func `counts the time in which the loop reads`() {
        var clock = LoopClock(at: 7 * second)
        let end = run(&clock, from: 7 * second, for: 100 * second)
        #expect(clock.now == end)
    }

    @Test(arguments: [2, 26, 86_400]) func `counts no pause of the process, nor the moments behind it`(pause: UInt64) {
        var clock = LoopClock(at: 0)
        let stopped = run(&clock, from: 0, for: 10 * second)
        clock.advance(to: stopped + pause * second)
        #expect(clock.now == stopped)
        let caughtUp = run(&clock, from: stopped + pause * second, for: second)
        #expect(clock.now == stopped)
        _ = run(&clock, from: caughtUp, for: 19 * second)
        #expect(clock.now == stopped + 19 * second)
    }

    @Test func `goes on where every round is slow`() {
        var clock = LoopClock(at: 0)
        for round in 1...100 { clock.advance(to: UInt64(round) * 3 * second) }
        #expect(clock.now >= 40 * second && clock.now <= 100 * second)
    }

    @Test func `counts a wait that no timer bounded`() {
        var clock = LoopClock(at: 0)
        clock.rest(until: 3_600 * second)
        #expect(clock.now == 3_600 * second)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `An event loop` {
    /// The time of the loop, set by the test, and what the loop did.
    private final class Scene: EventHandler, TimerTarget, Sendable {
        let time = Mutex(second)
        let wakeup = EventFD()
        let events = Mutex<[String]>([])

        func ready(_ readiness: Readiness) {
            wakeup.clear()
            events.withLock { $0.append("read") }
        }
        func roundEnded() {}
        func abandon() {}
        func timerFired(_ tag: Int64) { events.withLock { $0.append("timer") } }

        func pass(_ length: UInt64) { time.withLock { $0 += length } }

        func loop() throws -> EventLoop {
            let loop = try EventLoop(named: "scene") { self.time.withLock { $0 } }
            try loop.start()
            return loop
        }
    }

    private func perform(_ loop: EventLoop, _ job: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { done in
            loop.submit {
                job()
                done.resume()
            }
        }
    }

    @Test func `reads what has come before a timer fires`() async throws {
        let scene = Scene()
        let loop = try scene.loop()
        defer { loop.stop() }
        await perform(loop) {
            _ = loop.watch(scene.wakeup.file, for: .readable, scene)
            loop.schedule(afterMilliseconds: 100, target: scene, tag: 0)
            // In the middle of a round, behind its wait.
            scene.wakeup.signal()
            scene.pass(second / 5)
        }
        while scene.events.withLock({ $0.count }) < 2 { await perform(loop) {} }
        #expect(scene.events.withLock { $0 } == ["read", "timer"])
    }

    @Test func `fires no timer for the time in which it was stopped`() async throws {
        let scene = Scene()
        let loop = try scene.loop()
        defer { loop.stop() }
        await perform(loop) {
            loop.schedule(afterMilliseconds: 20_000, target: scene, tag: 0)
            scene.pass(3_600 * second)
        }
        var steps: UInt64 = 0
        while scene.events.withLock({ $0.isEmpty }) {
            steps += 1
            await perform(loop) { scene.pass(second / 2) }
        }
        #expect((40...48).contains(steps), "\(steps)")
    }
}
