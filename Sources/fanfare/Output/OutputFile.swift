import Campaigns
import Foundation
import OutputFiles

/// The destination of a result: standard output, or a path that a person named.
final class OutputFile {
    private let path: String
    /// `nil` for standard output.
    private let writer: OutputWriter?

    /// - Parameters:
    ///   - path: `nil` or `-` for standard output.
    ///   - mode: the mode of a new file.
    init(_ path: String?, _ privacy: OutputPath.Privacy = .asFound, mode: mode_t = 0o600) throws {
        self.path = path ?? "-"
        guard let path, path != "-" else {
            writer = nil
            return
        }
        guard !OutputPath(path).begins(with: Array("SQLite format 3".utf8)) else {
            throw Failure(
                .cannotMake,
                "\(path) is a database and will not be replaced; name another path, or remove the file first")
        }
        do {
            writer = try OutputPath(path).open(mode: mode, privacy)
        } catch {
            throw Self.failure(path, error)
        }
    }

    func write(_ text: String) throws {
        guard let writer else { return try Console.writeResult(text) }
        try check { () throws(OutputFault) in try writer.write(text.utf8) }
    }

    /// Moves the file to its final path. Does nothing for standard output.
    func finish() throws {
        guard let writer else { return }
        try check { () throws(OutputFault) in try writer.finish() }
    }

    private func check(_ body: () throws(OutputFault) -> Void) throws {
        do {
            try body()
        } catch {
            // A reader that closes the pipe early is no error.
            guard !error.isReaderGone else { return }
            throw Self.failure(path, error)
        }
    }

    private static func failure(_ path: String, _ fault: OutputFault) -> Failure {
        let advice =
            fault.isOfDisk ? "free disk space, or name another path" : "check the folder and its permissions"
        return Failure(fault.isOfDisk ? .inputOutput : .cannotMake, "cannot write \(path): \(fault); \(advice)")
    }
}
