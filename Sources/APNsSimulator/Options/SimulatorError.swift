/// Why a simulator cannot be made or started.
package enum SimulatorError: Error, Hashable, Sendable, CustomStringConvertible {
    case unusableKey(keyID: String, reason: String)
    case unreadableFile(path: String, reason: String)
    case unwritableFile(path: String, reason: String)
    case malformedLine(path: String, line: Int, reason: String)
    case certificateNotMade(reason: String)
    case cannotServe(reason: String)
    case noEnvironment

    package var description: String {
        switch self {
        case .unusableKey(let keyID, let reason):
            "cannot use the key \(keyID): \(reason); give the .p8 file's text, or a P-256 public key in PEM"
        case .unreadableFile(let path, let reason):
            "cannot read \(path): \(reason); check the path and its permissions"
        case .unwritableFile(let path, let reason):
            "cannot write \(path): \(reason); check the path and its permissions"
        case .malformedLine(let path, let line, let reason):
            "\(path):\(line): \(reason); each line is one JSON object"
        case .certificateNotMade(let reason):
            "cannot make a certificate: \(reason)"
        case .cannotServe(let reason):
            "cannot start the simulator: \(reason)"
        case .noEnvironment:
            "the simulator has no port to serve; give one for production or sandbox"
        }
    }
}
