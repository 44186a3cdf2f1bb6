import FeedReader
import Store
import WebClient

/// Why a feed gives no items, in words for a person.
package struct FeedFailure: Error, CustomStringConvertible {
    package var description: String
}

extension FeedPoller {
    /// - Parameter known: what the server may compare with; without a feed in the result nothing has changed since.
    func fetch(
        _ url: String, unlessLike known: FeedState?
    ) async throws(FeedFailure) -> (feed: Feed?, etag: String?, lastModified: String?) {
        var headers = [
            "Accept": "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1"
        ]
        headers["If-None-Match"] = known?.etag
        headers["If-Modified-Since"] = known?.lastModified
        let answer: WebResponse
        do throws(WebError) {
            answer = try await web.send(WebRequest(.get, url, headers: headers))
        } catch {
            throw FeedFailure(description: error.description)
        }
        switch answer.status {
        case 304: return (nil, answer.headers["etag"] ?? known?.etag, known?.lastModified)
        case 200: break
        default: throw FeedFailure(description: "\(ShownURL.text(url)) answers \(answer.status)")
        }
        do throws(FeedError) {
            return (
                try FeedDocument.read(answer.body, from: url), Self.headerValue(answer.headers["etag"]),
                Self.headerValue(answer.headers["last-modified"])
            )
        } catch {
            throw FeedFailure(description: "\(ShownURL.text(url)) is no feed: \(error.description)")
        }
    }

    /// What a server gave is given back to it: bounded, and nothing that a header cannot carry.
    private static func headerValue(_ text: String?) -> String? {
        text.flatMap { text in
            let isUsable = text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            return isUsable && (1...1024).contains(text.utf8.count) ? text : nil
        }
    }
}
