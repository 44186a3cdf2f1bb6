import CCurl
import Foundation
package import Model

/// The addresses that a request may connect to. The check is made for each connection, so it covers the result of a
/// name look-up and the target of a redirect.
package enum AddressPolicy: Hashable, Sendable {
    /// Allows any address. Use this case for an address that the operator wrote.
    case any
    /// Allows public addresses, and those that the operator allows. Use this case for an address that an author can
    /// write.
    ///
    /// A proxy would connect in place of this process, so only the proxy's own address could be checked. The
    /// environment's proxies are therefore not used, unless the operator leaves the check to the proxy
    /// (`throughProxy`).
    case publicOnes(besides: [AddressRange], throughProxy: Bool = false)

    /// Whether the environment's proxies may be used.
    var usesProxies: Bool {
        switch self {
        case .any: true
        case .publicOnes(_, let throughProxy): throughProxy
        }
    }

    package func allows(_ address: IPAddress) -> Bool {
        switch self {
        case .any: true
        case .publicOnes(let ranges, _): address.isPublic || ranges.contains { $0.contains(address) }
        }
    }
}

extension AddressPolicy {
    /// Returns the policy of the configuration for feeds and links.
    package static func feeds(_ feeds: Configuration.Feeds) -> AddressPolicy {
        .publicOnes(besides: feeds.allow, throughProxy: feeds.proxy)
    }
}

/// Checks addresses and opens the sockets of one request. Only the request's thread uses this object. libcurl holds
/// an unretained reference to it during the request.
final class SocketGuard {
    private let policy: AddressPolicy
    /// The first refused address.
    private(set) var refused: String?

    init(_ policy: AddressPolicy) { self.policy = policy }

    /// Makes libcurl call this object, which must outlive the request.
    func attach(to handle: UnsafeMutableRawPointer) -> CURLcode {
        guard policy != .any else { return CURLE_OK }
        // An empty text disables all proxies, even those of the environment.
        let code = policy.usesProxies ? CURLE_OK : fanfare_curl_set_pointer(handle, CURLOPT_PROXY, "")
        guard code == CURLE_OK else { return code }
        return fanfare_curl_set_open_socket(
            handle,
            { context, _, address in
                guard let context, let address else { return -1 }
                return Unmanaged<SocketGuard>.fromOpaque(context).takeUnretainedValue().open(address)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func open(_ target: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        guard let address = Self.address(target), policy.allows(address) else {
            refused = refused ?? Self.address(target).map { "\($0)" } ?? "not an IP address"
            return -1
        }
        return socket(
            target.pointee.family, target.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue), target.pointee.`protocol`)
    }

    private static func address(_ target: UnsafeMutablePointer<curl_sockaddr>) -> IPAddress? {
        guard let start = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return nil }
        // libcurl allocates `addrlen` bytes for the address, which can be more than the declared type has.
        let bytes = UnsafeRawBufferPointer(
            start: UnsafeRawPointer(target) + start, count: Int(target.pointee.addrlen))
        switch target.pointee.family {
        case AF_INET where bytes.count >= 8: return IPAddress(bytes: Array(bytes[4..<8]))
        case AF_INET6 where bytes.count >= 24: return IPAddress(bytes: Array(bytes[8..<24]))
        default: return nil
        }
    }
}
