import Foundation

/// The user who signed in, even if the command runs as another account.
package enum SignedInUser {
    /// The kernel's record of the login, which `su` and `sudo` do not change. All ones mean that no user signed in.
    private static let loginPath = "/proc/self/loginuid"

    /// The uid in the kernel's record. `nil` if no user signed in.
    package static var uid: UInt32? {
        guard let text = try? String(contentsOfFile: loginPath, encoding: .utf8), let uid = UInt32(text), uid != .max
        else { return nil }
        return uid
    }

    /// The user's name. `nil` if it is unknown. `SUDO_USER` is used only if the process runs as root, because any other
    /// user may have set it.
    package static var name: String? {
        if let uid { return name(of: uid) }
        guard getuid() == 0, let name = ProcessInfo.processInfo.environment["SUDO_USER"], !name.isEmpty else {
            return nil
        }
        return name
    }

    /// Returns the account's name from the operating system, or `uid-12345` for a uid without a name, as in a
    /// container. Never uses the environment's `USER`, which any user may set.
    package static func name(of uid: UInt32) -> String {
        getpwuid(uid).map { String(cString: $0.pointee.pw_name) } ?? "uid-\(uid)"
    }
}
