import Foundation

/// Writes to an ``OutputPath``. If the writer replaces a whole file and is dropped before ``finish()``, the old file
/// stays unchanged.
package final class OutputWriter {
    enum Way {
        /// A device, a FIFO or a descriptor.
        case stream
        /// The file itself.
        case direct(String, isNew: Bool)
        /// A file beside the target, which replaces the target at the end. The facts are `nil` if the target did not
        /// exist.
        case draft(Draft, target: String, OutputPath.FileFacts?, mode: mode_t)
    }

    private let path: OutputPath
    private let way: Way
    private let file: Int32
    private var isOpen = true

    init(_ path: OutputPath, _ way: Way, _ file: Int32) {
        self.path = path
        self.way = way
        self.file = file
    }

    deinit {
        closeFile()
        if case .draft(let draft, _, _, _) = way { draft.remove() }
    }

    package func write(_ bytes: some Collection<UInt8>) throws(OutputFault) {
        var rest = Array(bytes)
        while !rest.isEmpty {
            let count = Foundation.write(file, rest, rest.count)
            if count < 0 {
                guard errno == EINTR else { throw OutputFault(path.named, errno) }
            } else {
                rest.removeFirst(count)
            }
        }
    }

    /// Writes everything to disk, and moves the file to its place.
    package func finish() throws(OutputFault) {
        switch way {
        case .stream: try end()
        case .direct:
            guard fsync(file) == 0 else { throw OutputFault(path.named, errno) }
            try end()
        case .draft(let draft, let target, let facts, let mode):
            guard fchmod(file, mode) == 0, fsync(file) == 0 else { throw OutputFault(path.named, errno) }
            try end()
            try replace(draft.path, target, facts)
            OutputPath.flush(OutputPath.folder(of: target))
        }
    }

    /// Removes the file if this writer created it, or if the caller knows that an earlier writer did. Any other file
    /// stays.
    package func discard(isOurs: Bool = false) {
        defer { closeFile() }
        guard case .direct(let target, let isNew) = way, isNew || isOurs else { return }
        var own = stat()
        var now = stat()
        guard fstat(file, &own) == 0, lstat(target, &now) == 0, own.st_dev == now.st_dev, own.st_ino == now.st_ino
        else {
            return
        }
        unlink(target)
    }

    /// Moves the draft to the target's place. Throws if the target did not exist before and now exists, or is no longer
    /// a regular file.
    private func replace(_ draft: String, _ target: String, _ facts: OutputPath.FileFacts?) throws(OutputFault) {
        var now = stat()
        guard facts != nil, lstat(target, &now) == 0 else {
            return try OutputPath.place(draft, at: target, named: path.named)
        }
        guard now.st_mode & S_IFMT == S_IFREG else { throw OutputFault(path.named, EEXIST) }
        guard rename(draft, target) == 0 else { throw OutputFault(path.named, errno) }
    }

    private func end() throws(OutputFault) {
        isOpen = false
        guard close(file) == 0 || errno == EINTR else { throw OutputFault(path.named, errno) }
    }

    private func closeFile() {
        guard isOpen else { return }
        isOpen = false
        close(file)
    }
}
