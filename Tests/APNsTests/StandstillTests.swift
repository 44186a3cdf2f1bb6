import APNsSimulator
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import HTTP2

/// A process that stands still between the permission to send a request and its writing.
@Suite(.timeLimit(.minutes(5))) struct `A standstill before the write` {
    /// Submits one request as soon as the connection is open. A hook between gathering and writing uses up time.
    private final class Sender: ClientConnectionOwner, Sendable {
        let ends = Mutex<[ClientRequest.End]>([])
        let isSuspended = Mutex(false)
        private let (closing, isClosing) = AsyncStream.makeStream(of: Void.self)
        private let delay: UInt64
        private let wait: @Sendable () -> Void
        private let staysOpen: Bool
        private let bodyBytes: [Int]
        private let wasSuspended: @Sendable () -> Void

        /// - Parameters:
        ///   - wait: called between gathering and writing of the last requests, before the delay.
        ///   - earlier: whether a request without a delay goes first, and its response does not end the connection.
        ///   - bodyBytes: the size of the body of each of the last requests. The delay is in the last one if there are
        ///     several.
        ///   - suspended: called once the connection writes nothing more.
        init(
            delay: UInt64, earlier: Bool = false, bodyBytes: [Int] = [2],
            wait: @escaping @Sendable () -> Void = {}, suspended: @escaping @Sendable () -> Void = {}
        ) {
            self.bodyBytes = bodyBytes
            wasSuspended = suspended
            self.delay = delay
            self.wait = wait
            staysOpen = earlier
        }

        func opened(_ connection: ClientConnection) {
            if staysOpen { submit(1, 2, on: connection) } else { submitLast(connection) }
        }

        func submitLast(_ connection: ClientConnection) {
            // Only the request's frames are delayed.
            let (delay, wait) = (delay, wait)
            var end: UInt64?
            var bodiesAhead = bodyBytes.count - 1
            connection.core?.outputEdit = { frame in
                // The type of a DATA frame is 0.
                if bodiesAhead > 0 {
                    bodiesAhead -= frame[3] == 0 ? 1 : 0
                    return
                }
                if end == nil { wait() }
                let until = end ?? EventLoop.monotonicNanoseconds() + delay
                end = until
                while EventLoop.monotonicNanoseconds() < until {}
            }
            for (index, count) in bodyBytes.enumerated() { submit(2 + index, count, on: connection) }
        }

        private func submit(_ number: Int, _ bodyBytes: Int, on connection: ClientConnection) {
            let request = ClientRequest(number: number, ownFields: [])
            request.use(
                RequestFields([
                    RequestFields.Field(":method", Array("POST".utf8)),
                    RequestFields.Field(":scheme", Array("https".utf8)),
                    RequestFields.Field(":authority", Array("127.0.0.1".utf8)),
                    RequestFields.Field(":path", Array("/3/device/00".utf8)),
                ]))
            request.body = Array(repeating: 0x20, count: bodyBytes)
            kept.withLock { $0.requests.append(request) }
            #expect(connection.submit(request))
        }

        func ended(_ request: ClientRequest, _ end: ClientRequest.End, on connection: ClientConnection) {
            ends.withLock { $0.append(end) }
            if end == .responded, !staysOpen || isSuspended.withLock({ $0 }) { connection.goodbye() }
        }

        func suspended(_ connection: ClientConnection) {
            isSuspended.withLock { $0 = true }
            wasSuspended()
            if connection.openRequests == 0 { connection.goodbye() }
        }

        func goingAway(_ connection: ClientConnection, _ notice: GoAwayNotice) {}
        func inputRead(_ connection: ClientConnection) {}

        func closed(_ connection: ClientConnection, _ reason: ClientConnectionEnd) { isClosing.finish() }

        func isClosed() async { for await _ in closing {} }

        /// The requests, which their submitter keeps. Only the loop's thread uses them.
        private struct Kept: @unchecked Sendable { var requests: [ClientRequest] = [] }
        private let kept = Mutex(Kept())
    }

    private static func settings(to server: ScriptedServer, standstillMaxNs: UInt64) throws -> ClientSettings {
        var settings = ClientSettings(
            peer: TLSPeer(host: "127.0.0.1", port: server.port),
            tls: try TLSContext(clientTrusting: server.authorityPath, identity: nil))
        settings.standstillMaxNs = standstillMaxNs
        return settings
    }

    /// Returns once the sender's connection is closed.
    private static func run(_ sender: Sender, _ settings: ClientSettings, _ server: ScriptedServer) async throws {
        let loop = try EventLoop(named: "standstill")
        try loop.start()
        loop.submit { ClientConnection(settings, loop: loop, owner: sender).connect() }
        await sender.isClosed()
        server.stop()
        loop.stop()
    }

    @Test(arguments: [(delay: UInt64(0), arrives: 1), (delay: 60_000_000, arrives: 0)])
    func `sends nothing that was permitted before it`(delay: UInt64, arrives: Int) async throws {
        let requests = Mutex(0)
        let server = try ScriptedServer { connection in
            try connection.write(.settings((3, 100)))
            let stream = try connection.request()
            requests.withLock { $0 += 1 }
            try connection.write(.status(200, on: stream))
            try connection.readToEnd()
        }
        let settings = try Self.settings(to: server, standstillMaxNs: delay == 0 ? 60_000_000_000 : delay / 2)
        let sender = Sender(delay: delay)
        try await Self.run(sender, settings, server)
        #expect(requests.withLock { $0 } == arrives)
        // The request was gathered, but it never left.
        #expect(sender.ends.withLock { $0 } == (arrives == 1 ? [.responded] : [.notProcessed]))
        #expect(sender.isSuspended.withLock { $0 } == (arrives == 0))
    }

    /// What the peer has not taken when the process stands still was permitted before, too.
    @Test(arguments: [(standstill: UInt64(0), arrives: 1), (standstill: 2_000_000_000, arrives: 0)])
    func `sends nothing that a slow peer had not taken before it`(standstill: UInt64, arrives: Int) async throws {
        let requests = Mutex(0)
        let (arriving, isArriving) = AsyncStream.makeStream(of: Void.self)
        let mayRead = DispatchSemaphore(value: 0)
        let server = try ScriptedServer { connection in
            // Windows that hold the whole body, so that only the socket's buffers are full.
            try connection.write(.settings((3, 100), (4, 1 << 30)), Frame(.windowUpdate, [0x40, 0, 0, 0]))
            _ = try connection.frame(.headers)
            isArriving.finish()
            guard mayRead.wait(timeout: .now() + 50) == .success else { throw ScriptedConnection.Ended() }
            let stream = try connection.request()
            requests.withLock { $0 += 1 }
            try connection.write(.status(200, on: stream))
            try connection.readToEnd()
        }
        let settings = try Self.settings(to: server, standstillMaxNs: standstill == 0 ? 60_000_000_000 : standstill / 2)
        let sender = Sender(delay: 0, bodyBytes: [32 << 20])
        let loop = try EventLoop(named: "standstill")
        try loop.start()
        loop.submit { [settings] in ClientConnection(settings, loop: loop, owner: sender).connect() }
        for await _ in arriving {}
        loop.submit {
            let end = EventLoop.monotonicNanoseconds() + standstill
            while EventLoop.monotonicNanoseconds() < end {}
            mayRead.signal()
        }
        await sender.isClosed()
        server.stop()
        loop.stop()
        #expect(requests.withLock { $0 } == arrives)
        // Its last byte was not gathered yet.
        #expect(sender.ends.withLock { $0 } == (arrives == 1 ? [.responded] : [.notProcessed]))
    }

    @Test func `takes the responses that came meanwhile`() async throws {
        let (isStanding, hasResponded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let requests = Mutex(0)
        let (arrived, isThere) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { connection in
            try connection.write(.settings((3, 100)))
            let stream = try connection.request()
            requests.withLock { $0 += 1 }
            isThere.finish()
            guard isStanding.wait(timeout: .now() + 50) == .success else { throw ScriptedConnection.Ended() }
            try connection.write(.status(200, on: stream))
            hasResponded.signal()
            while true {
                _ = try connection.request()
                requests.withLock { $0 += 1 }
            }
        }
        let settings = try Self.settings(to: server, standstillMaxNs: 1_000_000_000)
        let sender = Sender(delay: 2_000_000_000, earlier: true) {
            isStanding.signal()
            _ = hasResponded.wait(timeout: .now() + 50)
        }
        let loop = try EventLoop(named: "standstill")
        try loop.start()
        let client = LoopConfined(ClientConnection(settings, loop: loop, owner: sender))
        loop.submit { client.value.connect() }
        for await _ in arrived {}
        loop.submit { sender.submitLast(client.value) }
        await sender.isClosed()
        server.stop()
        loop.stop()
        #expect(requests.withLock { $0 } == 1)
        #expect(sender.ends.withLock { $0 } == [.notProcessed, .responded])
    }

    /// A TLS record ends within a frame. The peer can use no part of a request whose last byte is in the next record.
    @Test(arguments: [true, false])
    func `leaves in doubt only what was written whole, and waits for its response`(responds: Bool) async throws {
        let requests = Mutex(0)
        let isSuspended = DispatchSemaphore(value: 0)
        let server = try ScriptedServer { connection in
            try connection.write(.settings((3, 100)))
            let stream = try connection.request()
            requests.withLock { $0 += 1 }
            guard isSuspended.wait(timeout: .now() + 50) == .success, responds else { throw ScriptedConnection.Ended() }
            try connection.write(.status(200, on: stream))
            while true {
                _ = try connection.request()
                requests.withLock { $0 += 1 }
            }
        }
        let settings = try Self.settings(to: server, standstillMaxNs: 1_000_000_000)
        // The first record holds the first body and most of the second one.
        let sender = Sender(delay: 2_000_000_000, bodyBytes: [2, 16_384, 16_384], suspended: { isSuspended.signal() })
        try await Self.run(sender, settings, server)
        #expect(requests.withLock { $0 } == 1)
        #expect(sender.ends.withLock { $0 } == [.notProcessed, .notProcessed, responds ? .responded : .lost])
    }
}
