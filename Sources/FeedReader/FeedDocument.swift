import Foundation
import FoundationXML

/// Reads RSS 0.9 to 2.0 and Atom 1.0 from bytes of any encoding that XML may have.
///
/// Made for what strangers write: external entities are never loaded, entities that multiply themselves and elements
/// nested without end are refused by libxml2, and items and texts beyond the bounds are left out.
package enum FeedDocument {
    package static let itemsMax = 2000
    package static let textBytesMax = 4096

    /// - Parameter url: where the document was found; relative links are taken from there.
    package static func read(_ bytes: [UInt8], from url: String) throws(FeedError) -> Feed {
        guard !bytes.isEmpty else { throw .empty }
        let parser = XMLParser(data: Data(bytes))
        parser.shouldProcessNamespaces = true
        parser.shouldResolveExternalEntities = false
        let elements = FeedElements(base: URL(string: url))
        parser.delegate = elements
        let isRead = parser.parse()
        if let root = elements.foreignRoot { throw .notAFeed(root: root) }
        // A document cut short is parsed as far as it goes, and is an error all the same.
        guard isRead, elements.hasRoot, parser.parserError == nil else {
            throw .malformed(line: max(1, parser.lineNumber))
        }
        return elements.feed
    }
}
