/// The proxy that the environment sets for connections to a host, by the variables that curl obeys.
enum ProxySetting {
    private static let variables = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]

    /// The name of the variable that sets one; nil: the way is open. A host of this machine needs no proxy.
    static func variable(for host: String, in environment: [String: String]) -> String? {
        guard !isThisMachine(host), !isExcepted(host, environment["no_proxy"] ?? environment["NO_PROXY"] ?? "") else {
            return nil
        }
        return variables.first { !(environment[$0] ?? "").isEmpty }
    }

    /// As curl reads it: names with all below them, separated by commas or blanks, or a star for every host.
    private static func isExcepted(_ host: String, _ exceptions: String) -> Bool {
        let host = host.lowercased()
        return exceptions.lowercased().split { $0 == "," || $0 == " " }.contains { exception in
            let name = exception.hasPrefix(".") ? exception.dropFirst() : exception
            return exception == "*" || host == name || host.hasSuffix(".\(name)")
        }
    }

    private static func isThisMachine(_ host: String) -> Bool {
        host == "localhost" || host.hasPrefix("127.") || host == "::1" || host == "[::1]"
    }
}
