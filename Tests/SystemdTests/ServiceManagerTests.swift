import Foundation
import TestSupport
import Synchronization
import Systemd
import Testing

@Suite(.timeLimit(.minutes(10))) struct `Notices to the service manager` {
    private func manager(_ socket: NoticeSocket, _ more: [String: String] = [:]) throws -> ServiceManager {
        try ServiceManager(
            environment: ["NOTIFY_SOCKET": socket.name].merging(more) { $1 }, processID: getpid())
    }

    @Test(arguments: [false, true]) func `arrive on a path and under an abstract name`(isAbstract: Bool) throws {
        let socket = try NoticeSocket(isAbstract: isAbstract)
        let manager = try manager(socket)
        #expect(manager.isListening)
        try manager.send(.ready, .status("3 campaigns, nothing due"))
        #expect(try socket.next() == "READY=1\nSTATUS=3 campaigns, nothing due")
    }

    @Test(
        arguments: [
            (.ready, "READY=1"), (.stopping, "STOPPING=1"), (.watchdog, "WATCHDOG=1"),
            (.reloading(monotonicMicroseconds: 42), "RELOADING=1\nMONOTONIC_USEC=42"),
            (.extendTimeout(.milliseconds(1500)), "EXTEND_TIMEOUT_USEC=1500000"),
            (.status("a\nREADY=1\r\nb"), "STATUS=a READY=1 b"),
            (.status(String(repeating: "ä", count: 2000)), "STATUS=" + String(repeating: "ä", count: 512)),
        ] as [(ServiceNotice, String)])
    func `are written as the protocol says`(notice: ServiceNotice, text: String) throws {
        let socket = try NoticeSocket()
        try manager(socket).send(notice)
        #expect(try socket.next() == text)
    }

    @Test func `go nowhere and fail never without a manager`() throws {
        for environment in [[:], ["NOTIFY_SOCKET": "", "WATCHDOG_USEC": "1000000"]] {
            let manager = try ServiceManager(environment: environment, processID: 1)
            #expect(!manager.isListening)
            #expect(manager.watchdogInterval == nil)
            try manager.send(.ready)
        }
    }

    @Test(arguments: ["relative", "@", "/", "vsock:2:1", "/" + String(repeating: "x", count: 107)])
    func `need an address that can be one`(name: String) {
        #expect(throws: ServiceManagerError.unusableAddress(name)) {
            try ServiceManager(environment: ["NOTIFY_SOCKET": name], processID: 1)
        }
    }

    @Test func `say where they could not go`() throws {
        let manager = try ServiceManager(environment: ["NOTIFY_SOCKET": "/nowhere/notify"], processID: 1)
        let error = #expect(throws: ServiceManagerError.self) { try manager.send(.ready) }
        #expect(error?.description.contains("/nowhere/notify: No such file") == true)
    }

    @Test func `a long start extends its timeout until it ends, also while its thread is blocked`() async throws {
        let socket = try NoticeSocket()
        let manager = try manager(socket)
        let value = try await manager.extendingStart(by: .seconds(60), every: .milliseconds(1)) {
            for notice in [try socket.next(), try socket.next(), try socket.next()] {
                #expect(notice == "EXTEND_TIMEOUT_USEC=60000000")
            }
            return 7
        }
        #expect(value == 7)
        try manager.send(.ready)
        #expect(try socket.notices(through: "READY=1").dropLast().allSatisfy { $0.hasPrefix("EXTEND_TIMEOUT") })
    }

    @Test func `a start that hangs extends its timeout up to a limit`() async throws {
        let socket = try NoticeSocket()
        let manager = try manager(socket)
        try await manager.extendingStart(every: .milliseconds(1), atMost: .milliseconds(2)) {
            for notice in [try socket.next(), try socket.next()] { #expect(notice == "EXTEND_TIMEOUT_USEC=60000000") }
            try manager.send(.status("hangs"))
            let last = try socket.next()
            #expect(last == "STATUS=hangs")
        }
        try await manager.extendingStart(atMost: .zero) { try manager.send(.status("none")) }
        #expect(try socket.next() == "STATUS=none")
    }

    @Test(arguments: [
        ("30000000", nil, 15.0), ("1", nil, 0.001), ("0", nil, nil), ("-5", nil, nil), ("soon", nil, nil),
        ("30000000", "own", 15.0), ("30000000", "1", nil), ("30000000", "", nil),
    ])
    func `the watchdog is fed at half its time, in the process it watches`(
        microseconds: String, pid: String?, seconds: Double?
    ) throws {
        let socket = try NoticeSocket()
        var environment = ["WATCHDOG_USEC": microseconds]
        environment["WATCHDOG_PID"] = pid == "own" ? "\(getpid())" : pid
        #expect(try manager(socket, environment).watchdogInterval == seconds.map { .seconds($0) })
    }

    @Test func `the watchdog hears nothing while the daemon is stuck, and ends with its task`() async throws {
        let socket = try NoticeSocket()
        let manager = try manager(socket, ["WATCHDOG_USEC": "20000000"])
        let (turns, turn) = AsyncStream.makeStream(of: Duration.self)
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self)
        let isAlive = Mutex(true)
        let feeding = Task {
            try await manager.notifyWatchdog {
                isAlive.withLock { $0 }
            } sleep: { duration in
                turn.yield(duration)
                for await _ in wakes { return }
            }
        }
        var slept = turns.makeAsyncIterator()
        #expect(await slept.next() == .seconds(10))
        #expect(try socket.next() == "WATCHDOG=1")
        isAlive.withLock { $0 = false }
        wake.yield()
        #expect(await slept.next() == .seconds(10))
        try manager.send(.status("stuck"))
        #expect(try socket.next() == "STATUS=stuck")
        isAlive.withLock { $0 = true }
        wake.yield()
        #expect(await slept.next() == .seconds(10))
        #expect(try socket.next() == "WATCHDOG=1")
        feeding.cancel()
        try await feeding.value
    }
}
