import Foundation

/// Writes to an ``OutputPath``. A writer that is dropped before ``finish()`` leaves a whole file as it was.
package final class OutputWriter {
    enum Way {
        /// A device, a FIFO or a descriptor.
        case stream
        /// The file itself.
        case direct(String, isNew: Bool)
        /// A file beside the target, which takes the target's place at the end. Its facts are `nil` if there was none.
        case draft(String, target: String, OutputPath.FileFacts?, mode: mode_t)
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
        if case .draft(let draft, _, _, _) = way { unlink(draft) }
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

    /// Puts everything on disk, and the file in its place.
    package func finish() throws(OutputFault) {
        switch way {
        case .stream: try end()
        case .direct:
            guard fsync(file) == 0 else { throw OutputFault(path.named, errno) }
            try end()
        case .draft(let draft, let target, let facts, let mode):
            guard fchmod(file, mode) == 0, fsync(file) == 0 else { throw OutputFault(path.named, errno) }
            try end()
            try replace(draft, target, facts)
            OutputPath.flush(OutputPath.folder(of: target))
        }
    }

    /// Removes the file if this writer made it, or the caller knows that an earlier one did. Anything else stays.
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

    /// What has taken the target's place meanwhile is not replaced.
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
