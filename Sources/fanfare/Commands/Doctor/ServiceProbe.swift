import Campaigns
import Foundation
import Systemd

extension ServiceFacts? {
    /// The facts from this machine's unit. `nil` if there is no unit, or if the user is not root and cannot check them.
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

/// Checks whether the port of the pages is free to listen on.
enum ListenProbe {
    static let fault: @Sendable (_ address: String) -> PortFault? = { address in
        guard let (host, port) = try? Operations.address(address) else {
            return .other("it is not an address and port")
        }
        return switch PortProbe.result(host: host, port: port) {
        case .free: nil
        case .taken: .taken
        case .unusable(let reason): .other(reason)
        }
    }
}
