import Foundation

/// Who sits at the terminal, whatever account the command runs as.
package enum SignedInUser {
    /// The kernel keeps it through `su` and `sudo`; all ones: nobody signed in.
    private static let loginPath = "/proc/self/loginuid"

    /// Nil: nothing says. The word of `sudo` is believed of root alone: anybody else may have written it.
    package static var name: String? {
        if let text = try? String(contentsOfFile: loginPath, encoding: .utf8), let uid = UInt32(text), uid != .max {
            return getpwuid(uid).map { String(cString: $0.pointee.pw_name) }
        }
        guard getuid() == 0, let name = ProcessInfo.processInfo.environment["SUDO_USER"], !name.isEmpty else {
            return nil
        }
        return name
    }
}
