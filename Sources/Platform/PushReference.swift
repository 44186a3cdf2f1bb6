import COpenSSL

/// The reference in a push by which an app reports what became of it: 22 characters for a run and a device.
///
/// The 16 bytes are one AES-128 block of the run (4 bytes), the device (5 bytes) and 7 zero bytes, encrypted with the
/// store's key. Without the key a reference says nothing, and a forged one has the zeros with a probability of 2^-56.
/// Checking one needs no query.
package struct PushReference: Hashable, Sendable {
    package static let textCount = 22
    fileprivate static let blockBytes = 16
    fileprivate static let runMax: Int64 = 1 << 32 - 1
    fileprivate static let deviceMax: Int64 = 1 << 40 - 1

    package var run: Int64
    package var device: Int64

    package init(run: Int64, device: Int64) {
        self.run = run
        self.device = device
    }
}

/// The key with which a store makes and checks references.
package struct PushReferenceKey: Hashable, Sendable {
    private static let bytesCount = 16
    private static let purpose = Array("fanfare feedback reference".utf8)

    private let bytes: [UInt8]

    /// Derives the key from the store's name space, which is random and secret, and moves with the store.
    package init(namespace: PushID) {
        let secret = withUnsafeBytes(of: (namespace.high.bigEndian, namespace.low.bigEndian)) { Array($0) }
        bytes = Array(Digest.hmacSHA256(Self.purpose, secret: secret).prefix(Self.bytesCount))
    }

    /// Returns the text of each reference in order, or `nil` if a number is out of range.
    package func texts(of references: [PushReference]) -> [[UInt8]]? {
        var blocks: [UInt8] = []
        blocks.reserveCapacity(references.count * PushReference.blockBytes)
        for reference in references {
            guard 0...PushReference.runMax ~= reference.run, 0...PushReference.deviceMax ~= reference.device else {
                return nil
            }
            for shift in stride(from: 24, through: 0, by: -8) {
                blocks.append(UInt8(truncatingIfNeeded: reference.run >> Int64(shift)))
            }
            for shift in stride(from: 32, through: 0, by: -8) {
                blocks.append(UInt8(truncatingIfNeeded: reference.device >> Int64(shift)))
            }
            blocks.append(contentsOf: repeatElement(0, count: 7))
        }
        guard let encrypted = transformed(blocks, encrypts: true) else { return nil }
        return stride(from: 0, to: encrypted.count, by: PushReference.blockBytes).map {
            Base64URL.encode(Array(encrypted[$0..<$0 + PushReference.blockBytes]))
        }
    }

    /// Returns the reference that each text stands for, in order: `nil` for a text that this key did not make.
    package func references(_ texts: [[UInt8]]) -> [PushReference?] {
        var blocks: [UInt8] = []
        blocks.reserveCapacity(texts.count * PushReference.blockBytes)
        let isBlock = texts.map { text in
            guard text.count == PushReference.textCount, let block = Base64URL.decode(text, lenient: false),
                block.count == PushReference.blockBytes,
                // The last character has 4 unused bits. Only one spelling is a reference.
                Base64URL.encode(block) == text
            else { return false }
            blocks += block
            return true
        }
        guard let plain = transformed(blocks, encrypts: false) else { return texts.map { _ in nil } }
        var start = 0
        return isBlock.map { isBlock in
            guard isBlock else { return nil }
            defer { start += PushReference.blockBytes }
            return Self.reference(plain[start..<start + PushReference.blockBytes])
        }
    }

    /// Returns the reference in a decrypted block, or `nil` if the key did not make the block.
    private static func reference(_ block: ArraySlice<UInt8>) -> PushReference? {
        let bytes = Array(block)
        guard bytes[9...].allSatisfy({ $0 == 0 }) else { return nil }
        let number = { (range: Range<Int>) in bytes[range].reduce(Int64(0)) { $0 << 8 | Int64($1) } }
        return PushReference(run: number(0..<4), device: number(4..<9))
    }

    /// Encrypts or decrypts whole blocks. Each block stands alone; equal blocks stand for the same push.
    private func transformed(_ blocks: [UInt8], encrypts: Bool) -> [UInt8]? {
        guard let context = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(context) }
        guard EVP_CipherInit_ex(context, EVP_aes_128_ecb(), nil, bytes, nil, encrypts ? 1 : 0) == 1,
            EVP_CIPHER_CTX_set_padding(context, 0) == 1
        else { return nil }
        var isDone = false
        let result = [UInt8](unsafeUninitializedCapacity: blocks.count + PushReference.blockBytes) { buffer, count in
            var written: Int32 = 0
            isDone = EVP_CipherUpdate(context, buffer.baseAddress, &written, blocks, Int32(blocks.count)) == 1
            count = isDone ? Int(written) : 0
        }
        return isDone && result.count == blocks.count ? result : nil
    }
}
