import Foundation
package import Model
import Store

/// The file that stops sending without the store: `STOP` in the senders' folder, which each sender watches, see
/// ``StopWatch``. An empty file, created by hand, stops everything.
///
/// Each line is one stop. Tabs separate its parts: the scope, the time (milliseconds since 1970), the author and the
/// reason. The first part alone is enough: `campaign new-podcast`. A line that cannot be read stops everything.
///
/// On a full disk, the stop is written into ``spareName``, a file of blank lines that each sender creates when it
/// starts. If that file is missing, a stop of everything becomes an empty file, which needs no disk space.
package struct StopFile: Sendable {
    package static let name = "STOP"
    static let spareName = "STOP.spare"
    /// The size of one block on most file systems.
    private static let spareBytes = 4096
    /// The number of tries for the lock, 1 ms apart: 1 s.
    private static let lockTurnsMax = 1000
    private static let writesMax = 20
    /// The times that a stop may have: from 1970 to the end of 9999. Any other time is a typing error or damage.
    private static let momentsKnown: ClosedRange<Int64> = 0...253_402_300_799_000

    package let path: String
    private let folder: SenderFolder

    init(_ folder: SenderFolder) {
        path = folder.path + "/" + Self.name
        self.folder = folder
    }

    /// Returns the stops that the file holds.
    package func read() -> StopOrders {
        guard let made = madeAt() else { return StopOrders() }
        let byHand = StopOrder(.all, by: "the creator of \(path)", at: made)
        guard let data = FileManager.default.contents(atPath: path) else {
            // The file was deleted again, or cannot be read. Only a deleted file stops nothing.
            return madeAt() == nil ? StopOrders() : StopOrders([byHand])
        }
        let lines = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).filter {
            $0.contains { !$0.isWhitespace }
        }
        return StopOrders(lines.isEmpty ? [byHand] : lines.map { Self.order($0, byHand) })
    }

    /// Puts a stop in force, and returns when it is on disk. Returns `false` if a stop of the same scope exists, and
    /// keeps that stop.
    package func put(_ order: StopOrder) throws -> Bool {
        try change { $0.put(order) }
    }

    /// Lifts the stop of this scope. Returns `false` if there was none.
    @discardableResult
    package func lift(_ scope: StopOrder.Scope) throws -> Bool {
        guard madeAt() != nil else { return false }
        return try change { $0.lift(scope) != nil }
    }

    /// Lifts the stop of one run, by its number and by its occurrence.
    package func lift(of run: Run) throws {
        try lift(.run(run.id))
        try lift(.occurrence(campaign: run.campaign, occurrence: run.occurrence))
    }

    /// Lifts exactly this stop. Another stop of its scope stays.
    package func lift(_ order: StopOrder) throws {
        guard madeAt() != nil else { return }
        _ = try change { orders in orders[order.scope]?.isSame(as: order) == true && orders.lift(order.scope) != nil }
    }

    private func change(_ body: (inout StopOrders) -> Bool) throws -> Bool {
        try folder.makeFolder()
        let directory = Glibc.open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw LockFile.failure(errno, folder.path) }
        defer { close(directory) }
        // Lock while the file is replaced. The wait is at most 1 s, so that a hanging process does not block a stop.
        for _ in 0..<Self.lockTurnsMax where flock(directory, LOCK_EX | LOCK_NB) != 0 { usleep(1000) }
        for _ in 0..<Self.writesMax {
            let before = read()
            var orders = before
            guard body(&orders) else { return false }
            // Do not overwrite the change of another process that did not get the lock either.
            guard try replace(by: orders, if: { read() == before }) else { continue }
            guard fsync(directory) == 0 else { throw LockFile.failure(errno, folder.path) }
            return true
        }
        throw SenderError.senderFolder(path: path, reason: "other processes keep changing it")
    }

    /// - Parameter isUnchanged: called after the new file is written and before it is renamed. If it returns `false`,
    ///   the old file stays and the result is `false`.
    private func replace(by orders: StopOrders, if isUnchanged: () -> Bool) throws -> Bool {
        if orders.isEmpty {
            guard isUnchanged() else { return false }
            guard unlink(path) == 0 || errno == ENOENT else { throw LockFile.failure(errno, path) }
            return true
        }
        let new = "\(path).\(getpid()).\(UInt32.random(in: 0 ... .max))"
        defer { unlink(new) }
        let fault = write(orders, to: new, O_CREAT | O_EXCL)
        if let fault {
            unlink(new)
            let isFull = [ENOSPC, EDQUOT, EFBIG, EIO].contains(fault)
            guard isFull, rename(sparePath, new) == 0, write(orders, to: new, 0, spare: Self.spareBytes) == nil else {
                guard isFull, orders[.all] != nil, makeEmpty() else { throw LockFile.failure(fault, new) }
                return true
            }
        }
        guard isUnchanged() else { return false }
        guard rename(new, path) == 0 else { throw LockFile.failure(errno, new) }
        return true
    }

    /// Writes the orders, and returns the `errno` of a failure. Fills a spare file to its end with blank lines.
    private func write(_ orders: StopOrders, to new: String, _ flags: Int32, spare: Int? = nil) -> Int32? {
        let file = Glibc.open(new, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0o600)
        guard file >= 0 else { return errno }
        defer { close(file) }
        folder.handOver(new)
        var bytes = Array(Self.text(orders).utf8)
        if let spare {
            if bytes.count > spare { bytes = Array(Self.text(orders, withReasons: false).utf8) }
            guard bytes.count <= spare else { return ENOSPC }
            bytes += [UInt8](repeating: UInt8(ascii: "\n"), count: spare - bytes.count)
        }
        let count = Glibc.write(file, bytes, bytes.count)
        guard count == bytes.count else { return count < 0 ? errno : ENOSPC }
        return fsync(file) == 0 ? nil : errno
    }

    /// Creates an empty file, which stops everything. The author and the reason of the stop are lost.
    private func makeEmpty() -> Bool {
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return false }
        folder.handOver(path)
        return close(file) == 0
    }

    private var sparePath: String { "\(folder.path)/\(Self.spareName)" }

    /// Creates the spare file, if there is none and the disk has room.
    func keepSpare() {
        let file = Glibc.open(sparePath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return }
        defer { close(file) }
        folder.handOver(sparePath)
        let bytes = [UInt8](repeating: UInt8(ascii: "\n"), count: Self.spareBytes)
        if Glibc.write(file, bytes, bytes.count) != bytes.count || fsync(file) != 0 { unlink(sparePath) }
    }

    private func madeAt() -> Timestamp? {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return nil }
        let range = Self.momentsKnown
        let seconds = min(max(Int64(facts.st_mtim.tv_sec), range.lowerBound / 1000), range.upperBound / 1000)
        return Timestamp(milliseconds: seconds * 1000 + Int64(facts.st_mtim.tv_nsec) / 1_000_000)
    }

    private static func text(_ orders: StopOrders, withReasons: Bool = true) -> String {
        orders.orders.map { order in
            let reason = withReasons ? order.reason ?? "" : ""
            let parts = [order.scope.text, "\(order.at.milliseconds)", order.by, reason]
            return parts.map { $0.map { $0.isNewline || $0 == "\t" ? " " : String($0) }.joined() }
                .joined(separator: "\t") + "\n"
        }.joined()
    }

    private static func order(_ line: Substring, _ byHand: StopOrder) -> StopOrder {
        let parts = line.split(separator: "\t", maxSplits: 3, omittingEmptySubsequences: false)
        var order = byHand
        order.scope = parts.first.map { StopOrder.Scope(String($0)) ?? .all } ?? .all
        guard parts.count == 4, let moment = Int64(parts[1]), momentsKnown.contains(moment) else { return order }
        order.at = Timestamp(milliseconds: moment)
        order.by = String(parts[2])
        order.reason = parts[3].isEmpty ? nil : String(parts[3])
        return order
    }
}

extension SenderFolder {
    /// The stop file that every sender of this folder obeys immediately.
    package var stopFile: StopFile { StopFile(self) }
}
