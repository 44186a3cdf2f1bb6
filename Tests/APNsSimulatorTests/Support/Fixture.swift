import APNsSimulator
import Foundation
import TestSupport

/// A simulator with one key, one app and a few devices, in a directory of its own.
final class Fixture {
    static let topic = "com.example.wendercast"

    let simulator: Simulator
    let key: TestKey
    private let folder: TemporaryDirectory
    var directory: String { folder.path }
    private let startedAt = Fixture.seconds()

    /// Tokens by number; 1 to 9 are registered in production, 11 to 19 in the sandbox.
    static func token(_ number: Int) -> [UInt8] { [UInt8](repeating: 0xab, count: 30) + [0, UInt8(number)] }

    static func hex(_ number: Int) -> String { token(number).map { String(format: "%02x", $0) }.joined() }

    init(_ change: (inout SimulatorOptions, TestKey) throws -> Void = { _, _ in }) throws {
        folder = try TemporaryDirectory()
        key = try TestKey()
        var options = SimulatorOptions(directory: folder.path)
        options.keys = [SimulatorKey(keyID: TestKey.keyID, teamID: TestKey.teamID, pem: key.pem)]
        options.topics = [Self.topic]
        for number in 1...9 {
            options.registry.register(token: Self.token(number), environment: .production, topic: Self.topic)
            options.registry.register(token: Self.token(10 + number), environment: .sandbox, topic: Self.topic)
        }
        options.keepsLog = true
        try change(&options, key)
        simulator = try Simulator(options)
        try simulator.start()
    }

    deinit {
        simulator.stop()
    }

    /// Now, by this machine's clock: certificates are judged by it.
    static func seconds() -> Int { Int(Date().timeIntervalSince1970) }

    /// Counted from when the fixture was made: the same claims each time, so no update of the token.
    func authorization(secondsAgo: Int = 0) throws -> String {
        try key.token(issuedAt: startedAt - secondsAgo)
    }

    /// A right push to a device.
    func push(_ number: Int = 1) throws -> TestRequest {
        TestRequest(token: Self.hex(number), authorization: try authorization())
    }

    func client(
        _ environment: SimulatorEnvironment = .production, certificate: (path: String, keyPath: String)? = nil
    ) throws -> TestClient {
        try TestClient(
            port: simulator.port(for: environment), trusting: simulator.authorityPath, certificate: certificate)
    }
}

extension Simulator {
    /// Until its counts are so; for what a client is never told.
    func wait(until condition: (SimulatorCounts) -> Bool) throws {
        let deadline = ContinuousClock.now + .seconds(20)
        while !condition(counts()) {
            if ContinuousClock.now > deadline { throw TestClient.Failure.ended }
        }
    }
}
