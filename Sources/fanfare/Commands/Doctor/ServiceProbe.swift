import Campaigns
import Foundation
import Systemd

extension ServiceFacts? {
    /// From the unit of this machine; `nil` without one, and for users but root, who could not look at what it may do.
    static var ofThisMachine: ServiceFacts? {
        guard geteuid() == 0 else { return nil }
        return InstalledUnit.read(folders: InstalledUnit.folders).flatMap { $0.facts }
    }
}

extension InstalledUnit {
    var facts: ServiceFacts? {
        guard let entry = getpwnam(user)?.pointee else { return nil }
        var count: Int32 = 64
        var groups = [gid_t](repeating: 0, count: Int(count))
        guard getgrouplist(user, entry.pw_gid, &groups, &count) >= 0 else { return nil }
        let copies = "/run/credentials/\(Self.name)"
        return ServiceFacts(
            user: ServiceUser(name: user, uid: entry.pw_uid, groups: Set(groups.prefix(Int(count)))),
            credentials: credentials, copies: FileManager.default.fileExists(atPath: copies) ? copies : nil,
            stateFolder: "/var/lib/\(stateDirectory)", configuration: configuration)
    }
}

/// Whether the port of the pages can be listened on.
enum ListenProbe {
    static let fault: @Sendable (_ address: String) -> PortFault? = { address in
        guard let (host, port) = try? Operations.address(address) else { return .other("it is no address and port") }
        return switch PortProbe.result(host: host, port: port) {
        case .free: nil
        case .taken: .taken
        case .unusable(let reason): .other(reason)
        }
    }
}
