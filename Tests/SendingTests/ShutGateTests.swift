@testable import APNs
import Platform
@testable import Sending
import Testing

/// Requests that must not start: after a pause of the machine that its own clock does not count, and while heartbeats are
/// answered too late to be of use.
struct ShutGateTests {
    private static let second: UInt64 = 1_000_000_000
    private static let window = 5 * second / 2

    /// Both clocks of a machine: the counter runs at 3 cycles a nanosecond, also while the machine is paused.
    private final class Clocks {
        private var pace = CyclePace()

        init() { for seconds in 0...3 { _ = moment(at: Double(seconds)) } }

        func moment(at seconds: Double, paused: Double = 0) -> BootMoment {
            pace.moment(UInt64(seconds * 1e9), 1_000 + UInt64((seconds + paused) * 3e9))
        }
    }

    @Test func `a pause that the machine's clock does not count closes the gate until the next answer`() {
        let clocks = Clocks()
        let gate = StartGate(openUntil: 0)
        gate.open(for: Self.window, from: clocks.moment(at: 4))
        #expect(gate.answer(at: clocks.moment(at: 5)) == .open)
        #expect(gate.answer(at: clocks.moment(at: 5.1, paused: 13)) == .lapsed)
        gate.open(for: Self.window, from: clocks.moment(at: 5.2, paused: 13))
        #expect(gate.answer(at: clocks.moment(at: 6, paused: 13)) == .open)
        #expect(gate.answer(at: clocks.moment(at: 7.8, paused: 13)) == .lapsed)
    }

    @Test func `an answer to a heartbeat from before the pause opens nothing after it`() {
        let clocks = Clocks()
        let gate = StartGate(openUntil: 0)
        let sent = clocks.moment(at: 4)
        // It was answered at once; the answer is read after the pause.
        gate.open(for: Self.window, from: sent)
        #expect(gate.answer(at: clocks.moment(at: 4.01, paused: 13)) == .lapsed)
    }

    @Test(arguments: [(0.0, 1.0), (13.0, 1.0), (0.0, 0.001)])
    func `an interval with a pause, or a sleep that the counter does not count, changes the pace for nobody`(
        paused: Double, slowdown: Double
    ) {
        var pace = CyclePace()
        var (nanoseconds, counter) = (Self.second, UInt64(1_000))
        var last = pace.moment(nanoseconds, counter)
        for interval in 0..<9 {
            nanoseconds += Self.second
            let isOdd = interval == 6
            counter += UInt64(3 * Double(Self.second) * (isOdd ? slowdown : 1) + (isOdd ? paused * 3e9 : 0))
            last = pace.moment(nanoseconds, counter)
        }
        #expect(last.cycles(after: Self.second) == counter + 3 * Self.second)
    }

    @Test func `without a counter, or before its pace is known, the machine's clock decides alone`() {
        var pace = CyclePace()
        let moments = [pace.moment(Self.second, 77), pace.moment(9 * Self.second, 0)]
        #expect(moments.allSatisfy { $0.cycles(after: 5) == .max })
        let gate = StartGate(openUntil: 0)
        gate.open(for: Self.window, from: BootMoment(nanoseconds: Self.second, counter: 0, rate: 0))
        let late = BootMoment(nanoseconds: 3 * Self.second, counter: .max - 1, rate: 0)
        #expect(gate.answer(at: late) == .open)
        gate.close()
        #expect(gate.answer(at: late) == .closed)
    }

    @Test func `heartbeats that are answered too late are told once, and once when they are in time again`() {
        var shut = ShutGate()
        var told: [ShutGate.Change?] = []
        for second in 0..<30 { told.append(shut.isTold(isOpen: second == 0 || second > 20, at: .seconds(second))) }
        #expect(told.compactMap(\.self) == [.shut, .opened])
        #expect(told[11] == .shut && told[21] == .opened)
    }
}
