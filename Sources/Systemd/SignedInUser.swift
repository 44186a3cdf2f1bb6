import Foundation

/// Who sits at the terminal, whatever account the command runs as.
package enum SignedInUser {
    /// The kernel keeps it through `su` and `sudo`; all ones: nobody signed in.
    private static let loginPath = "/proc/self/loginuid"

    /// The kernel's word; `nil`: nobody signed in.
    package static var uid: UInt32? {
        guard let text = try? String(contentsOfFile: loginPath, encoding: .utf8), let uid = UInt32(text), uid != .max
        else { return nil }
        return uid
    }

    /// Nil: nothing says. The word of `sudo` is believed of root alone: anybody else may have written it.
    package static var name: String? {
        if let uid { return name(of: uid) }
        guard getuid() == 0, let name = ProcessInfo.processInfo.environment["SUDO_USER"], !name.isEmpty else {
            return nil
        }
        return name
    }

    /// The account's name as the operating system has it, or `uid-12345` for a uid without a name, as in a container.
    /// Never the environment's `USER`, which anybody may set.
    package static func name(of uid: UInt32) -> String {
        getpwuid(uid).map { String(cString: $0.pointee.pw_name) } ?? "uid-\(uid)"
    }
}
