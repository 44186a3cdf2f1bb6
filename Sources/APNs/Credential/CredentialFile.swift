import Glibc

/// The bytes and mode of a small file that holds a key or a certificate.
struct CredentialFile {
    /// Far above any key or certificate chain.
    static let bytesMax = 1 << 20

    let bytes: [UInt8]
    /// True where users outside owner and group may read it.
    let isReadableByOthers: Bool

    init(path: String) throws(CredentialError) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Self.unreadable(path) }
        defer { close(file) }
        var facts = stat()
        guard fstat(file, &facts) == 0 else { throw Self.unreadable(path) }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            throw .unreadable(path: path, reason: "it is not a regular file")
        }
        guard facts.st_size <= Self.bytesMax else {
            throw .unreadable(path: path, reason: "it is too large to be a key or certificate")
        }
        let size = Int(facts.st_size)
        var readCount = 0
        bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            readCount = buffer.baseAddress.map { read(file, $0, size) } ?? 0
            count = max(0, readCount)
        }
        guard readCount >= 0 else { throw Self.unreadable(path) }
        isReadableByOthers = facts.st_mode & S_IROTH != 0
    }

    private static func unreadable(_ path: String) -> CredentialError {
        .unreadable(path: path, reason: String(cString: strerror(errno)))
    }
}
