import APNs
import ArgumentParser
import CKernel
import Campaigns
import Foundation
import Model
import SQLiteStore
import Sending
import Store
import Systemd
import WebClient

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check everything that this machine needs to send pushes.",
        discussion: """
            Checks configuration, campaign files, keys, rights, clock, limits, store, disk and proxy, each with ok or \
            what to do; changes nothing, and connects only to the server of a PostgreSQL store, unless --network is \
            given. The output holds no secrets: attach it to a support request. Run the command as root on a machine \
            with the service: it then checks the keys, and everything that the service's user must be able to read and \
            write. Exit codes: 0 nothing is wrong; 69 APNs, or the server of the store, cannot be \
            reached; 78 something else is wrong.
            """)

    @OptionGroup var settings: Settings
    @Flag(help: "Also connect to APNs, or to the configured endpoints, with one push to a made-up token for each.")
    var network = false
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let diagnosis = DiagnoseInstallation(
            source: settings.source, environment: ProcessInfo.processInfo.environment, probes: .ofThisProcess,
            now: Timestamp(Date()))
        let result = await diagnosis.diagnose(network: network)
        Console.print(json ? try ResultJSON.text(result) : DiagnosisPage(result: result).text)
        if let failure = result.failure { throw ExitStatus(failure).exitCode }
    }
}

/// The results of `doctor`, as text.
struct DiagnosisPage {
    let result: DiagnosisResult

    var text: String {
        let head = [
            "fanfare \(result.version) on \(result.system), as \(result.user)", result.libraries, "",
        ]
        let lines = result.checks.map { finding in
            "\(finding.state.rawValue.padded(to: 8)) \(finding.check.rawValue.padded(to: 14)) \(finding.message)"
        }
        return (head + lines + ["", verdict]).joined(separator: "\n")
    }

    private var verdict: String {
        let wrong = result.checks.count { $0.state == .wrong }
        let doubtful = result.checks.count { $0.state == .warning }
        let parts = [
            wrong == 0 ? nil : "\(wrong) to correct",
            doubtful == 0 ? nil : "\(doubtful) to check",
        ].compactMap(\.self)
        return parts.isEmpty ? "No problems found." : parts.joined(separator: ", ").appending(".")
    }
}

extension DiagnoseInstallation.Probes {
    private static let looksEvery: Duration = .milliseconds(50)

    /// Returns the process whose lock was there at each look for ``lockedFor``. Senders lock the store for a moment
    /// only, again and again.
    private static func lastingLock(on path: String) async -> String? {
        let end = ContinuousClock.now + lockedFor
        while let lock = StoreLock.find(path) {
            guard ContinuousClock.now < end else { return lock.holder }
            try? await Task.sleep(for: looksEvery)
        }
        return nil
    }

    static var ofThisProcess: DiagnoseInstallation.Probes {
        let environment = ProcessInfo.processInfo.environment
        return DiagnoseInstallation.Probes(
            openStore: { try await StoreOpening.open($0, .reading) },
            credential: { try CredentialFacts(trying: $0, for: $1) },
            proxy: { app in
                let hosts = PushEnvironment.allCases.filter(app.credential.environments.contains)
                    .compactMap { try? SendingSetup.endpoint(app, $0).host }
                return ProxySetting.use(by: app.transport, to: hosts, in: environment)
            },
            reach: { await EndpointProbe(app: $0, environment: $1, store: $2).reach() },
            portFault: ListenProbe.fault, storeLock: { await lastingLock(on: $0) },
            machine: .ofThisMachine, service: .ofThisMachine)
    }
}

extension CredentialFacts {
    /// Loads the credential. A key also signs a text, to prove that it works.
    init(trying credential: Configuration.Credential, for environment: PushEnvironment) throws {
        switch credential {
        case .key(_, _, let path): try self.init(tryingKey: path)
        case .keys(_, let keys): try self.init(tryingKey: keys[environment]?.path ?? "")
        case .certificate(let certificatePath, let privateKeyPath, let passwordPath):
            let credential = try PushCredential(
                certificatePath: certificatePath, privateKeyPath: privateKeyPath, passwordPath: passwordPath)
            guard case .certificate(let certificate) = credential else {
                self.init()
                return
            }
            self.init(
                expiresAt: Timestamp(milliseconds: certificate.expiresAt), topics: certificate.topics)
        }
    }

    private init(tryingKey path: String) throws {
        let key = try SigningKey(path: path)
        _ = try key.signature(over: Array("fanfare".utf8))
        self.init()
    }
}

extension MachineFacts {
    static var ofThisMachine: MachineFacts {
        let processInfo = ProcessInfo.processInfo
        let kernel = processInfo.operatingSystemVersion
        return MachineFacts(
            version: Fanfare.configuration.version,
            system: "\(processInfo.operatingSystemVersionString), Linux \(kernel.majorVersion).\(kernel.minorVersion), "
                + "\(processInfo.activeProcessorCount) processors, \(processInfo.physicalMemory / 1_000_000) MB",
            libraries: HTTPClient.libraries, user: "\(SignedInUser.name(of: getuid())) (uid \(getuid()))",
            isClockKept: Kernel.isClockKept,
            openFilesMax: Kernel.limit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue)),
            threadsMax: getuid() == 0 ? nil : Kernel.limit(__rlimit_resource_t(__RLIMIT_NPROC.rawValue)),
            networkFileSystem: Kernel.networkFileSystem)
    }
}

/// Queries to the kernel.
private enum Kernel {
    /// Whether NTP or the host of a virtual machine disciplines the clock. `nil` if the kernel does not say.
    static var isClockKept: Bool? {
        let answer = fanfare_clock_is_kept()
        return answer < 0 ? nil : answer == 1
    }

    static func limit(_ resource: __rlimit_resource_t) -> Int? {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? Int(clamping: limit.rlim_cur) : nil
    }

    /// Returns the name of a network file system by the magic numbers of statfs(2), or `nil` for other file systems.
    static func networkFileSystem(_ folder: String) -> String? {
        let names: [UInt32: String] = [
            0x6969: "NFS", 0xFF53_4D42: "CIFS", 0xFE53_4D42: "SMB", 0x517B: "SMB", 0x00C3_6400: "Ceph",
            0x0102_1997: "9P", 0x5346_414F: "AFS",
        ]
        return names[fanfare_file_system(folder)]
    }
}
