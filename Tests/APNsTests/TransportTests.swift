import APNs
import APNsSimulator
import Foundation
import Logging
import Platform
import Testing
import TransportContract

extension TransportKind {
    /// The default first.
    static let all = [native, curl]

    static let native = TransportKind(description: "native", knowsStreams: true) { credential, limits, trust in
        NativeTransport(
            credential: credential, limits: limits, trust: trust, logger: Logger(label: "test"),
            backOff: Backoff(first: .milliseconds(1), longest: .milliseconds(1)))
    }

    static let curl = TransportKind(description: "curl", knowsStreams: false) { credential, limits, trust in
        CurlTransport(
            credential: credential, limits: limits, trust: trust, logger: Logger(label: "test"),
            backOff: Backoff(first: .milliseconds(1), longest: .milliseconds(1)))
    }
}

/// What every transport promises when all goes well.
@Suite(.timeLimit(.minutes(10))) struct `A transport when all goes well` {
    @Test(arguments: TransportKind.all)
    func `every push is answered once and seen once under its own id`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`every push is answered once and seen once under its own id`()
    }

    @Test(arguments: TransportKind.all)
    func `thousands of pushes go over one connection`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`thousands of pushes go over one connection`()
    }

    @Test(arguments: TransportKind.all)
    func `token, headers and payload arrive as given`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`token, headers and payload arrive as given`()
    }

    @Test(arguments: TransportKind.all)
    func `one connection carries all, with one stream until a push was accepted`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`one connection carries all, with one stream until a push was accepted`()
    }

    @Test(arguments: TransportKind.all)
    func `dead tokens at the front are tried alone until one is accepted`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`dead tokens at the front are tried alone until one is accepted`()
    }

    @Test(arguments: TransportKind.all, [(streamsMax: 7, peer: 1000), (streamsMax: 1000, peer: 7)])
    func `neither our stream limit nor the peer's is passed`(kind: TransportKind, limits: (streamsMax: Int, peer: Int))
        async throws
    {
        try await TransportPromises(kind).`neither our stream limit nor the peer's is passed`(limits: limits)
    }

    @Test(arguments: TransportKind.all)
    func `a full lane takes the next batch only when answers were taken`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a full lane takes the next batch only when answers were taken`()
    }

    @Test(arguments: TransportKind.all)
    func `a finished lane answers what it has, takes nothing more and ends`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a finished lane answers what it has, takes nothing more and ends`()
    }

    @Test(arguments: TransportKind.all)
    func `nothing starts from a batch's last moment on`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`nothing starts from a batch's last moment on`()
    }

    @Test(arguments: TransportKind.all)
    func `behind a closed gate nothing starts and everything comes back`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`behind a closed gate nothing starts and everything comes back`()
    }

    @Test(arguments: TransportKind.all)
    func `after a recall only what is handed over later starts`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`after a recall only what is handed over later starts`()
    }

    @Test(arguments: TransportKind.all)
    func `while nobody opens the gate pushes wait, and then they leave`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`while nobody opens the gate pushes wait, and then they leave`()
    }

    @Test(arguments: TransportKind.all)
    func `the journal has what started and what was answered, and nothing else`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`the journal has what started and what was answered, and nothing else`()
    }

    @Test(arguments: TransportKind.all)
    func `a lane without work connects to nobody`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a lane without work connects to nobody`()
    }

    @Test(arguments: TransportKind.all)
    func `a name is looked up, and the address that answers is used`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a name is looked up, and the address that answers is used`()
    }

    @Test(arguments: TransportKind.all)
    func `a client certificate may come as PKCS#12`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a client certificate may come as PKCS#12`()
    }

    @Test(arguments: TransportKind.all)
    func `a client certificate speaks for us without authorization`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a client certificate speaks for us without authorization`()
    }
}

/// How every transport reports what APNs says, and what it does about it.
@Suite(.timeLimit(.minutes(10))) struct `A transport and what APNs says` {
    @Test(arguments: TransportKind.all)
    func `every status and reason is reported as answered`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`every status and reason is reported as answered`()
    }

    @Test(arguments: TransportKind.all)
    func `a 410 carries when the token died`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a 410 carries when the token died`()
    }

    @Test(arguments: TransportKind.all)
    func `an error answer that broke off is no answer`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`an error answer that broke off is no answer`()
    }

    @Test(arguments: TransportKind.all)
    func `when to come again is told with 429 and 5xx, in seconds or as a date`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`when to come again is told with 429 and 5xx, in seconds or as a date`()
    }

    @Test(arguments: TransportKind.all)
    func `a token signed by another key is refused push by push`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a token signed by another key is refused push by push`()
    }

    @Test(arguments: TransportKind.all, [false, true])
    func `an expired token is reported, renewed, and used on a new connection`(
        kind: TransportKind, isShared: Bool
    ) async throws {
        try await TransportPromises(kind).`an expired token is reported, renewed, and used on a new connection`(
            sharing: isShared ? RecordInMemory() : nil)
    }

    @Test(arguments: TransportKind.all)
    func `lanes that share a token send with one`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`lanes that share a token send with one`()
    }

    @Test(arguments: TransportKind.all)
    func `after too many updates no token is signed for a while`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`after too many updates no token is signed for a while`()
    }

    @Test(arguments: TransportKind.all)
    func `a fresh token called expired stops the lane over its clock`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a fresh token called expired stops the lane over its clock`()
    }

    @Test(arguments: TransportKind.all, ["Shutdown", "IdleTimeout", "UnrelatedKeyIdInToken"])
    func `an answer about the connection moves the lane to a new one`(kind: TransportKind, name: String) async throws {
        try await TransportPromises(kind).`an answer about the connection moves the lane to a new one`(name: name)
    }

    @Test(arguments: TransportKind.all)
    func `a certificate of the other environment is a fault of the credential`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a certificate of the other environment is a fault of the credential`()
    }
}

/// What every transport promises when something goes wrong.
@Suite(.timeLimit(.minutes(10))) struct `A transport in trouble` {
    @Test(arguments: TransportKind.all)
    func `a cancelled lane lets the wire answer and gives the rest back unsent`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a cancelled lane lets the wire answer and gives the rest back unsent`()
    }

    @Test(arguments: TransportKind.all)
    func `a cancelled lane waits no longer than its drain limit`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a cancelled lane waits no longer than its drain limit`()
    }

    @Test(arguments: TransportKind.all)
    func `a lane cancelled before it ran ends at once`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a lane cancelled before it ran ends at once`()
    }

    @Test(arguments: TransportKind.all)
    func `a push without an answer is unknown after its deadline and harms no other`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a push without an answer is unknown after its deadline and harms no other`()
    }

    @Test(arguments: TransportKind.all)
    func `deadlines missed in a row retire the connection`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`deadlines missed in a row retire the connection`()
    }

    @Test(arguments: TransportKind.all, TransportPromises.endings)
    func `no ending of a connection loses a push or sends one twice`(kind: TransportKind, ending: FaultAction)
        async throws
    {
        try await TransportPromises(kind).`no ending of a connection loses a push or sends one twice`(ending: ending)
    }

    @Test(arguments: TransportKind.all)
    func `a connection that closes under a push leaves its outcome unknown`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a connection that closes under a push leaves its outcome unknown`()
    }

    @Test(arguments: TransportKind.all)
    func `a host that cannot be reached ends the lane with the push unsent`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a host that cannot be reached ends the lane with the push unsent`()
    }

    @Test(arguments: TransportKind.all)
    func `a service that goes away in mid run leaves no push without a response`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a service that goes away in mid run leaves no push without a response`()
    }

    @Test(arguments: TransportKind.all)
    func `a server whose certificate does not verify is not spoken to`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a server whose certificate does not verify is not spoken to`()
    }

    @Test(arguments: TransportKind.all)
    func `a missing file of trusted certificates is named`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a missing file of trusted certificates is named`()
    }
}

/// What every transport promises under the faults of the simulator, counted from both sides.
@Suite(.timeLimit(.minutes(10))) struct `A transport under faults` {
    @Test(arguments: TransportKind.all, TransportPromises.goAways + TransportPromises.otherFaults)
    func `no push is lost, doubled or misjudged`(kind: TransportKind, row: TransportPromises.FaultRow) async throws {
        try await TransportPromises(kind).`no push is lost, doubled or misjudged`(row: row)
    }

    @Test(arguments: TransportKind.all)
    func `a connection that falls silent is replaced`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a connection that falls silent is replaced`()
    }

    @Test(arguments: TransportKind.all)
    func `a service that is away for long ends the lane with the rest unsent`(kind: TransportKind) async throws {
        try await TransportPromises(kind).`a service that is away for long ends the lane with the rest unsent`()
    }
}

@Suite struct `The contract of transports` {
    @Test func `the suites above call every promise, on the default transport first`() throws {
        #expect(TransportKind.all.map(\.description) == ["native", "curl"])
        let here = URL(fileURLWithPath: #filePath)
        let suites = try String(contentsOf: here, encoding: .utf8)
        let contract = here.deletingLastPathComponent().deletingLastPathComponent().appending(path: "TransportContract")
        var promises: [String] = []
        for file in try FileManager.default.contentsOfDirectory(at: contract, includingPropertiesForKeys: nil) {
            let text = try String(contentsOf: file, encoding: .utf8)
            promises += text.matches(of: /package func (`[^`]+`)\(/).map { String($0.1) }
        }
        #expect(promises.count > 30)
        for promise in promises {
            #expect(suites.contains("TransportPromises(kind).\(promise)("), "\(promise) is not called")
        }
        #expect(suites.matches(of: /@Test\(arguments: TransportKind\.all/).count == promises.count)
    }
}
