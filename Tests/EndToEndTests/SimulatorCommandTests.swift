import Foundation
import TestSupport
import Testing

/// `fanfare simulator` as a process of its own.
@Suite(.ownThread, .timeLimit(.minutes(2))) struct SimulatorCommandTests {
    @Test func `a faulty script is refused with each place`() throws {
        let folder = try TemporaryDirectory()
        try folder.write("faults:\n  - {every: 0, close: true}\n  - {outrage: 2s}\n", to: "faults.yaml")
        let result = try Program.run(["simulator", "--script", "faults.yaml"], in: folder)
        #expect(result.status == 65)
        #expect(result.errors.contains("faults.yaml:2:13: error: \"every\": expected a whole number"))
        #expect(
            result.errors.contains("faults.yaml:3:6: error: fault: unknown key \"outrage\"; did you mean \"outage\"?"))
        let flag = try Program.run(["simulator", "--fault", "{rate: 2, close: true}"], in: folder)
        #expect(flag.status == 65)
        #expect(flag.errors.contains("--fault:1:8: error: \"rate\""))
        #expect(try Program.run(["simulator", "--script", "none.yaml"], in: folder).status == 65)
    }

    @Test func `a scripted simulator loses what it is told to, and a run settles every delivery`() throws {
        let installation = try Installation(devices: 20)
        try installation.folder.write(
            """
            faults:
              - {token: \(installation.tokens[4]), times: 1, answer_lost: reset}
              - {token: \(installation.tokens[9]), answer: {status: 410, reason: Unregistered, timestamp: 1700000000000}}
            """,
            to: "faults.yaml")
        let simulator = try RunningProgram(
            [
                "simulator", "--port", "0", "--sandbox-port", "0", "--key", "TESTKEY001:TESTTEAM01:key.p8",
                "--registry",
                "registry.jsonl", "--script", "faults.yaml", "--fault", "{number: 12, delay: 20ms}", "--log",
                "log.jsonl",
            ], in: installation.folder)
        try simulator.wait { simulator.output.contains("trust:") }
        let production = try #require(simulator.output.firstMatch(of: /production (\S+)/)).1
        try installation.configure(production: String(production), trust: installation.folder.path + "/ca.pem")
        try installation.importDevices()
        let run = try installation.run("new-podcast")
        #expect(run.status == 0, "\(run.errors)")
        simulator.signal(SIGTERM)
        let words = try simulator.finish().output
        #expect(words.contains("3 faults, 1 answer lost"), "\(words)")
        let log = try installation.folder.read("log.jsonl").split(separator: "\n")
        let lost = log.filter { $0.contains(installation.tokens[4]) }
        #expect(lost.count == 2)
        #expect(lost.count { $0.contains(#""answer_lost":true"#) } == 1)
        #expect(lost.allSatisfy { $0.contains(#""status":200"#) })
        #expect(log.count { $0.contains(#""reason":"Unregistered""#) } == 1)
        #expect(try installation.fanfare("report", "1", "--check").status == 0)
    }
}
