import CCurl

/// libcurl's linked list of header lines; it must outlive the request that uses it.
final class HeaderLines {
    private(set) var first: UnsafeMutablePointer<curl_slist>?

    init(_ lines: [String]) {
        for line in lines {
            // Nil when memory is out: the line is missing then, and the list goes on.
            if let list = curl_slist_append(first, line) { first = list }
        }
    }

    deinit {
        curl_slist_free_all(first)
    }
}
