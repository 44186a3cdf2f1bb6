import Testing

@testable import Web

/// What a client has to do on its connection, second by second.
struct ConnectionProgressTests {
    private static func uploading() -> ConnectionProgress {
        var progress = ConnectionProgress(ServerLimits(), at: .zero)
        progress.requestBegan(at: .zero)
        progress.wants(at: .zero)
        return progress
    }

    /// Seconds after which a body is refused that brings so many bytes every so many seconds; nil: it goes on for an hour.
    private static func refusal(_ bytes: Int, every seconds: Int) -> Int? {
        var progress = uploading()
        for second in 1...3600 {
            let now = Duration.seconds(second)
            if second.isMultiple(of: seconds) {
                progress.bodyArrived(bytes, at: now)
                progress.wants(at: now)
            }
            if progress.look(at: now) == .refuseUpload { return second }
        }
        return nil
    }

    @Test func `a body that dribbles is refused, a slow and honest one goes on`() {
        #expect(Self.refusal(1, every: 60) == 21)
        #expect(Self.refusal(100, every: 1) == 92)
        #expect(Self.refusal(1024, every: 1) == nil)
        #expect(Self.refusal(10_240, every: 10) == nil)
        #expect(Self.refusal(1 << 20, every: 30) == 21)
    }

    @Test func `pieces that come together all count`() {
        var progress = Self.uploading()
        for second in 1...600 where second.isMultiple(of: 5) {
            for _ in 0..<20 { progress.bodyArrived(100, at: .seconds(second)) }
            progress.wants(at: .seconds(second))
            #expect(progress.look(at: .seconds(second + 4)) == .wait)
        }
    }

    @Test func `what the server takes its time for is not held against a client`() {
        var progress = Self.uploading()
        progress.bodyArrived(1, at: .seconds(1))
        // It has enough for now, and takes more an hour later.
        #expect(progress.look(at: .seconds(3601)) == .wait)
        progress.wants(at: .seconds(3601))
        #expect(progress.look(at: .seconds(3602)) == .wait)
        progress.requestEnded()
        #expect(progress.look(at: .seconds(9000)) == .wait)
    }

    @Test func `whoever was refused is listened to no longer`() {
        var progress = Self.uploading()
        #expect(progress.look(at: .seconds(21)) == .refuseUpload)
        #expect(progress.isLastAnswer)
        #expect(progress.look(at: .seconds(22)) == .wait)
        #expect(progress.look(at: .seconds(26)) == .close)
    }

    @Test func `a connection without a request is closed, one with an answer under way is not`() {
        var progress = ConnectionProgress(ServerLimits(), at: .zero)
        #expect(progress.look(at: .seconds(9)) == .wait)
        #expect(progress.look(at: .seconds(10)) == .close)
        progress.requestBegan(at: .zero)
        progress.requestEnded()
        #expect(progress.look(at: .seconds(1000)) == .wait)
        progress.answerBegan()
        progress.answerEnded(at: .seconds(1000))
        #expect(progress.look(at: .seconds(1009)) == .wait)
        #expect(progress.look(at: .seconds(1010)) == .close)
    }

    @Test func `a client that takes nothing of its answer is closed, one that takes little is not`() {
        var progress = Self.uploading()
        progress.requestEnded()
        progress.answerBegan()
        progress.isLeft(1000, at: .zero)
        for second in 1...100 {
            progress.isLeft(1000 - second, at: .seconds(second))
            #expect(progress.look(at: .seconds(second)) == .wait)
        }
        // More is written, and nothing taken.
        progress.isLeft(5000, at: .seconds(100))
        let end = Duration.seconds(100) + ServerLimits().write
        progress.isLeft(5000, at: end - .seconds(1))
        #expect(progress.look(at: end - .seconds(1)) == .wait)
        progress.isLeft(5000, at: end)
        #expect(progress.look(at: end) == .close)
    }

    @Test func `whoever is told no more has a moment to read what there was`() {
        var progress = Self.uploading()
        progress.isLeft(100, at: .zero)
        progress.outputClosed(at: .seconds(1))
        progress.isLeft(50, at: .seconds(9))
        #expect(progress.look(at: .seconds(9)) == .wait)
        progress.isLeft(0, at: .seconds(10))
        #expect(progress.look(at: .seconds(14)) == .wait)
        progress.isLeft(0, at: .seconds(15))
        #expect(progress.look(at: .seconds(15)) == .close)
    }

    @Test func `a client that sends no more is waited for while it reads, and not for what is not begun`() {
        var progress = Self.uploading()
        progress.requestEnded()
        progress.inputClosed(at: .seconds(1))
        #expect(progress.look(at: .seconds(5)) == .wait)
        #expect(progress.look(at: .seconds(6)) == .close)
        progress.answerBegan()
        #expect(progress.look(at: .seconds(60)) == .wait)
    }
}
