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

    /// Writes a result for a person to read. Returns whether the reader wants more.
    @discardableResult func write(_ text: String) throws -> Bool {
        guard let writer else { return try Console.writeResult(text) }
        return try check { () throws(OutputFault) in try writer.write(text.utf8) }
    }

    /// Writes rows of a table. If the reader has closed the pipe, the command ends here with
    /// ``ExitStatus/inputOutput``, because the table is incomplete. It prints no error, because the reader may have
    /// seen enough (`fanfare devices export | head`).
    func writeRows(_ text: String) throws {
        guard try write(text) else { throw ExitStatus.inputOutput.exitCode }
    }

    /// Moves the file to its final path. Does nothing for standard output.
    func finish() throws {
        guard let writer else { return }
        try check { () throws(OutputFault) in try writer.finish() }
    }

    /// Returns `false` if the reader of a pipe has closed it.
    @discardableResult private func check(_ body: () throws(OutputFault) -> Void) throws -> Bool {
        do {
            try body()
            return true
        } catch {
            guard !error.isReaderGone else { return false }
            throw Self.failure(path, error)
        }
    }

    private static func failure(_ path: String, _ fault: OutputFault) -> Failure {
        let advice =
            fault.isOfDisk ? "free disk space, or name another path" : "check the folder and its permissions"
        return Failure(fault.isOfDisk ? .inputOutput : .cannotMake, "cannot write \(path): \(fault); \(advice)")
    }
}
