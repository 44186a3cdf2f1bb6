import CCurl

/// The shared headers of a batch as libcurl's linked list, built once and hung behind the `apns-id` line of every
/// request under them.
///
/// Used by one lane's thread only; libcurl reads the nodes while a request is set up and never writes them.
final class HeaderChain {
    /// One node per header, linked in order; each owns its text.
    private let nodes: UnsafeMutablePointer<curl_slist>
    private let count: Int

    var first: UnsafeMutablePointer<curl_slist> { nodes }

    init(headers: PushHeaders, token: ProviderToken?) {
        var lines = headers.sharedHeaders(authorization: token?.authorization).map { header in
            Array(header.name.utf8) + Array(": ".utf8) + header.value + [0]
        }
        // libcurl would add `accept: */*` by itself; a name without value takes it out.
        lines.append(Array("accept:".utf8) + [0])
        count = lines.count
        nodes = .allocate(capacity: count)
        for (index, line) in lines.enumerated() {
            let text = UnsafeMutableRawPointer.allocate(byteCount: line.count, alignment: 1)
            text.copyMemory(from: line, byteCount: line.count)
            let next = index + 1 < count ? nodes + index + 1 : nil
            let node = curl_slist(data: text.assumingMemoryBound(to: CChar.self), next: next)
            (nodes + index).initialize(to: node)
        }
    }

    deinit {
        for index in 0..<count { UnsafeMutableRawPointer(nodes[index].data)?.deallocate() }
        nodes.deallocate()
    }
}
