import COpenSSL

/// What the certificate of a peer says, as values.
package struct PeerCertificate: Hashable, Sendable {
    /// It is in date and leads to an authority that this side trusts.
    package let isTrusted: Bool
    /// `UID` of the subject: the bundle id in a certificate for APNs (`ProviderProtocol` section 2).
    package let subjectUserID: String?
    /// Dotted object identifiers of its extensions.
    package let extensions: Set<String>

    init(_ certificate: OpaquePointer, isTrusted: Bool) {
        self.isTrusted = isTrusted
        subjectUserID = Self.userID(of: certificate)
        var found: Set<String> = []
        for index in 0..<X509_get_ext_count(certificate) {
            guard let object = X509_EXTENSION_get_object(X509_get_ext(certificate, index)) else { continue }
            var text = [CChar](repeating: 0, count: 128)
            let length = OBJ_obj2txt(&text, Int32(text.count), object, 1)
            guard length > 0, Int(length) < text.count else { continue }
            found.insert(String(decoding: text.prefix(Int(length)).map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        extensions = found
    }

    private static func userID(of certificate: OpaquePointer) -> String? {
        guard let subject = X509_get_subject_name(certificate) else { return nil }
        let index = X509_NAME_get_index_by_NID(subject, NID_userId, -1)
        guard index >= 0, let entry = X509_NAME_get_entry(subject, index) else { return nil }
        guard let data = X509_NAME_ENTRY_get_data(entry), let bytes = ASN1_STRING_get0_data(data) else { return nil }
        let buffer = UnsafeBufferPointer(start: bytes, count: Int(ASN1_STRING_length(data)))
        return String(decoding: buffer, as: UTF8.self)
    }
}
