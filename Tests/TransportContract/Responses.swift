import APNs
import APNsSimulator
import Synchronization
import Testing
import TestSupport

// How every transport reports what APNs says, and what it does about it.
extension TransportPromises {
    package func `every status and reason is reported as answered`() async throws {
        // Those after which the connection is left have tests of their own.
        let rows = PushReason.known.filter { !PushResponse(status: $0.status, reason: $0.reason).retiresConnection }
        let scene = try LaneScene { options in
            options.faults = rows.enumerated().map { index, row in
                FaultRule(
                    when: .token(LaneScene.token(index + 1)), action: .answer(status: row.status, reason: row.name))
            }
        }
        let run = await LaneRun.of(scene.lane(kind), LaneScene.batch(0..<rows.count + 1))
        #expect(run.isComplete(0..<rows.count + 1))
        for (index, row) in rows.enumerated() {
            guard case .answered(let answer) = run.result(index + 1) else {
                Issue.record("no answer for \(row.name)")
                continue
            }
            #expect(answer.status == row.status && answer.reason == row.reason)
        }
    }

    package func `a 410 carries when the token died`() async throws {
        let scene = try LaneScene { options in
            options.registry.setGone(token: LaneScene.token(1), environment: .production, since: 1_780_000_000_123)
        }
        let run = await LaneRun.of(scene.lane(kind), LaneScene.batch(0..<2))
        let expected = PushResponse(status: 410, reason: .unregistered, timestamp: 1_780_000_000_123)
        #expect(run.result(1) == .answered(expected))
    }

    package func `an error answer that broke off is no answer`() async throws {
        let since: Int64 = 1_780_000_000_123
        let scene = try LaneScene { options in
            options.registry.setGone(token: LaneScene.token(1), environment: .production, since: since)
            // Unknown here: 400 BadDeviceToken.
            options.registry.remove(token: LaneScene.token(2), environment: .production)
            options.faults = (1...3).map { FaultRule(when: .token(LaneScene.token($0)), action: .cutAnswer) }
        }
        let lane = scene.lane(kind) { limits in
            limits.streamsMax = 1
            limits.connectAttemptsMax = 1000
            limits.reconnectAttemptsMax = 1000
        }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<10))
        for (number, status) in [(1, 410), (2, 400)] {
            let result = run.result(number)
            // libcurl may lose the headers together with the stream, and the connection with both.
            let isLost = !kind.knowsStreams && result?.isUnknown == true
            #expect(result == .cutOff(status: status) || isLost, "\(String(describing: result))")
        }
        // A 200 says all with its headers.
        #expect(run.result(3)?.status == 200 || !kind.knowsStreams)
        #expect(run.acceptedCount >= 7 && run.isComplete(0..<10))
    }

    package func `when to come again is told with 429 and 5xx, in seconds or as a date`() async throws {
        let date = "Sun, 22 Nov 2026 00:02:00 GMT"
        let rows: [(action: FaultAction, expected: PushResponse)] = [
            (
                .answer(status: 429, reason: "TooManyRequests", retryAfter: "7"),
                PushResponse(status: 429, reason: .tooManyRequests, retryAfter: .seconds(7))
            ),
            (
                .answer(status: 500, reason: "InternalServerError", retryAfter: date),
                PushResponse(status: 500, reason: .internalServerError, retryAfter: .moment(1_795_305_720_000))
            ),
            (
                .page(status: 502, body: "<html>Bad Gateway</html>", retryAfter: "120"),
                PushResponse(status: 502, retryAfter: .seconds(120))
            ),
            (
                .answer(status: 500, reason: "InternalServerError", retryAfter: "later"),
                PushResponse(status: 500, reason: .internalServerError)
            ),
            (
                .answer(status: 500, reason: "InternalServerError"),
                PushResponse(status: 500, reason: .internalServerError)
            ),
            (
                .answer(status: 400, reason: "BadTopic", retryAfter: "7"),
                PushResponse(status: 400, reason: .badTopic)
            ),
            (.answer(status: 200, reason: "", retryAfter: "7"), PushResponse(status: 200)),
        ]
        let scene = try LaneScene { options in
            options.faults = rows.enumerated().map {
                FaultRule(when: .token(LaneScene.token($0 + 1)), action: $1.action)
            }
        }
        // One stream at a time: what one answer says is not taken for the next one's, nor kept for the next request.
        let lane = scene.lane(kind) { $0.streamsMax = 1 }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<2 * rows.count))
        for (index, row) in rows.enumerated() { #expect(run.result(index + 1) == .answered(row.expected)) }
        #expect(run.acceptedCount == rows.count + 1)
    }

    package func `a token signed by another key is refused push by push`() async throws {
        let scene = try LaneScene()
        let other = try LaneScene()
        let run = await LaneRun.of(
            scene.lane(kind, credential: .token(scene.source(key: other.key))), LaneScene.batch(0..<10))
        #expect(run.error == nil)
        let expected = PushResult.answered(PushResponse(status: 403, reason: .invalidProviderToken))
        #expect(run.count { $0 == expected } == 10)
        #expect(scene.simulator.log().allSatisfy { $0.openStreams <= 1 })
    }

    /// - Parameter sharing: nil: the token is for this process alone.
    package func `an expired token is reported, renewed, and used on a new connection`(
        sharing: RecordInMemory?
    ) async throws {
        let scene = try LaneScene()
        // The machine's clock was two hours slow when the first token was signed, then it was set.
        let calls = Mutex(0)
        let source = scene.source(sharing: sharing) {
            let isFirst = calls.withLock { calls in
                calls += 1
                return calls == 1
            }
            return SimulatorOptions.systemMilliseconds() - (isFirst ? 7_200_000 : 0)
        }
        let run = await LaneRun.of(scene.lane(kind, credential: .token(source)), LaneScene.batch(0..<30))
        #expect(run.error == nil)
        #expect(run.result(0) == .answered(PushResponse(status: 403, reason: .expiredProviderToken)))
        #expect(run.acceptedCount == 29)
        #expect(scene.simulator.counts().connections == 2)
        #expect(scene.simulator.log().authorizationHashes.count == 2)
        if let sharing { #expect(sharing.tokens.count == 2) }
    }

    package func `lanes that share a token send with one`() async throws {
        let scene = try LaneScene()
        let record = RecordInMemory()
        let runs = await withTaskGroup(of: LaneRun.self) { group in
            for number in 0..<4 {
                // Processes with two lanes each.
                let source = scene.source(sharing: record)
                for half in 0..<2 {
                    let lane = scene.lane(kind, credential: .token(source))
                    let first = (2 * number + half) * 20
                    group.addTask { await LaneRun.of(lane, LaneScene.batch(first..<first + 20)) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(runs.reduce(0) { $0 + $1.acceptedCount } == 160)
        #expect(scene.simulator.log().authorizationHashes.count == 1)
        #expect(record.tokens.count == 1)
    }

    package func `after too many updates no token is signed for a while`() async throws {
        let scene = try LaneScene { options in
            options.faults = [
                FaultRule(when: .always, action: .answer(status: 429, reason: "TooManyProviderTokenUpdates"))
            ]
        }
        let time = ManualTime()
        let source = ProviderTokenSource(
            key: scene.key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG", now: time.now, uptime: time.uptime, jitter: { 0 }
        )
        #expect(try source.authorization().generation == 1)
        time.advance(by: .seconds(30 * 60))
        let run = await LaneRun.of(scene.lane(kind, credential: .token(source)), LaneScene.batch(0..<1))
        #expect(run.result(0) == .answered(PushResponse(status: 429, reason: .tooManyProviderTokenUpdates)))
        // Otherwise it would be due.
        time.advance(by: .seconds(16 * 60))
        #expect(try source.authorization().generation == 1)
        time.advance(by: .seconds(5 * 60))
        #expect(try source.authorization().generation == 2)
    }

    package func `a fresh token called expired stops the lane over its clock`() async throws {
        let scene = try LaneScene { $0.clockOffsetMs = 7_200_000 }
        let run = await LaneRun.of(scene.lane(kind), LaneScene.batch(0..<5))
        #expect(run.error?.description.contains("clock is wrong") == true)
        #expect(run.result(0) == .answered(PushResponse(status: 403, reason: .expiredProviderToken)))
        #expect(run.count { $0 == .notSent(.stopped) } == 4)
        #expect(scene.simulator.counts().requests == 1)
    }

    package func `an answer about the connection moves the lane to a new one`(name: String) async throws {
        let row = try #require(PushReason.known.first { $0.name == name })
        let scene = try LaneScene { options in
            options.faults = [
                FaultRule(when: .token(LaneScene.token(0)), action: .answer(status: row.status, reason: name))
            ]
        }
        let run = await LaneRun.of(scene.lane(kind), LaneScene.batch(0..<20))
        #expect(run.result(0) == .answered(PushResponse(status: row.status, reason: row.reason)))
        #expect(run.acceptedCount == 19)
        #expect(scene.simulator.counts().connections == 2)
    }

    package func `a certificate of the other environment is a fault of the credential`() async throws {
        let scene = try LaneScene()
        let lane = scene.lane(kind, credential: try scene.certificate(for: .sandbox)) { $0.connectAttemptsMax = 2 }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<5))
        guard case .credentialUnusable(let reason) = run.error else {
            Issue.record("\(String(describing: run.error))")
            return
        }
        #expect(reason.contains("certificate"))
        #expect(run.isComplete(0..<5))
        #expect(run.acceptedCount == 0)
    }
}
