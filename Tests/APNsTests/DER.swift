/// ASN.1 as the `openssl` command wants a signature.
enum DER {
    /// From r||s, 32 bytes each, to a SEQUENCE of two INTEGERs.
    static func signature(raw: [UInt8]) -> [UInt8] {
        let body = integer(raw.prefix(32)) + integer(raw.suffix(32))
        return [0x30, UInt8(body.count)] + body
    }

    private static func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var bytes = Array(bytes.drop { $0 == 0 })
        if bytes.first.map({ $0 >= 0x80 }) ?? true { bytes.insert(0, at: 0) }
        return [0x02, UInt8(bytes.count)] + bytes
    }
}
