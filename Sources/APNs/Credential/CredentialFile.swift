import COpenSSL
import Glibc

/// The bytes and mode of a small file that holds a key or a certificate.
struct CredentialFile {
    /// The maximum size, far above that of any key or certificate chain.
    static let bytesMax = 1 << 20

    let bytes: [UInt8]
    /// Whether users other than the owner and the group may read the file.
    let isReadableByOthers: Bool

    init(path: String) throws(CredentialError) {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
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
        let reason = String(cString: strerror(errno))
        return [EMFILE, ENFILE, ENOMEM].contains(errno)
            ? .exhausted(path: path, reason: reason) : .unreadable(path: path, reason: reason)
    }
}

/// PEM text. It identifies its contents, and parses them with OpenSSL.
struct PEMText {
    let bytes: [UInt8]

    /// The labels of the text's blocks in order: `PRIVATE KEY`, `CERTIFICATE`, ...
    var labels: [String] {
        String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).compactMap { line in
            guard line.hasPrefix("-----BEGIN ") else { return nil }
            let label = line.dropFirst("-----BEGIN ".count)
            return label.firstRange(of: "-----").map { String(label[..<$0.lowerBound]) }
        }
    }

    /// Names the last line of a block that has only its first line. `nil` if every block has both.
    var missingEnd: String? {
        let text = String(decoding: bytes, as: UTF8.self)
        let label = labels.first { !text.contains("-----END \($0)-----") }
        return label.map { "the line -----END \($0)----- is missing" }
    }

    /// A description of the contents, for errors.
    var contents: String {
        if bytes.isEmpty { return "an empty file" }
        let labels = labels
        if labels.isEmpty { return "not PEM text (no line such as -----BEGIN PRIVATE KEY-----)" }
        if labels.contains("CERTIFICATE REQUEST") { return "a certificate request" }
        if labels.contains("CERTIFICATE") { return "a certificate" }
        if labels.contains(where: { $0.hasSuffix("PUBLIC KEY") }) { return "a public key" }
        if labels.contains(where: { $0.hasSuffix("PRIVATE KEY") }) { return "a private key" }
        return "PEM of another kind (\(labels.joined(separator: ", ")))"
    }

    var holdsPrivateKey: Bool { labels.contains { $0.hasSuffix("PRIVATE KEY") } }

    /// Returns the first private key. The caller frees it.
    func privateKey(origin: String) throws(CredentialError) -> OpaquePointer {
        guard holdsPrivateKey else { throw .noPrivateKey(origin: origin, holds: contents) }
        ERR_clear_error()
        var wasAsked = false
        let key = withMemory { memory in
            // With no callback, OpenSSL would ask for the passphrase on the terminal.
            PEM_read_bio_PrivateKey(
                memory, nil,
                { _, _, _, asked in
                    asked?.assumingMemoryBound(to: Bool.self).pointee = true
                    return -1
                }, &wasAsked)
        }
        if let key { return key }
        if wasAsked { throw .encryptedKey(origin: origin) }
        throw .malformedKey(origin: origin, reason: missingEnd ?? OpenSSLFault.last)
    }

    /// Returns the first certificate. The caller frees it.
    func certificate(origin: String) throws(CredentialError) -> OpaquePointer {
        guard labels.contains("CERTIFICATE") else { throw .noCertificate(origin: origin, holds: contents) }
        ERR_clear_error()
        guard let certificate = withMemory({ PEM_read_bio_X509($0, nil, nil, nil) }) else {
            throw .malformedCertificate(origin: origin, reason: missingEnd ?? OpenSSLFault.last)
        }
        return certificate
    }

    private func withMemory<Value>(_ body: (OpaquePointer) -> Value?) -> Value? {
        bytes.withUnsafeBytes { buffer in
            guard let memory = BIO_new_mem_buf(buffer.baseAddress, Int32(buffer.count)) else { return nil }
            defer { BIO_free(memory) }
            return body(memory)
        }
    }
}

enum OpenSSLFault {
    /// The newest error of this thread in OpenSSL's words. Reading it clears the thread's error queue.
    static var last: String {
        let code = ERR_peek_last_error()
        ERR_clear_error()
        return ERR_reason_error_string(code).map { String(cString: $0) } ?? "unknown error"
    }
}
