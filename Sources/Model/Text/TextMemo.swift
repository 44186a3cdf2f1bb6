import Synchronization

/// What texts were read as, for those that are read again and again: the definition of a run in a list, the files behind a
/// page. Only for readers that always make the same of the same text: a text that has changed is another one, and so nothing
/// old is ever shown for it.
///
/// Holds as much as fits into ``bytesMax`` of text, and no single one that would take much of that. One lock, which is not
/// held while a text is read: two may read the same one at once.
package final class TextMemo<Value: Sendable>: Sendable {
    /// By its bytes: two ways to write "ü" are one text to Swift, and not to whoever compares them with what devices say.
    private struct Key: Hashable {
        let place: String
        let text: String
        /// Made before the lock is taken.
        let hash: UInt64

        init(place: String, text: String) {
            self.place = place
            self.text = text
            hash = FNV1a.hash(place) &* 31 &+ FNV1a.hash(text)
        }

        var bytes: Int { place.utf8.count + text.utf8.count }

        static func == (left: Key, right: Key) -> Bool {
            left.hash == right.hash && left.text.utf8.elementsEqual(right.text.utf8)
                && left.place.utf8.elementsEqual(right.place.utf8)
        }

        func hash(into hasher: inout Hasher) { hasher.combine(hash) }
    }

    private struct Known {
        var values: [Key: Value] = [:]
        var bytes = 0
    }

    private let bytesMax: Int
    private let known = Mutex(Known())

    package init(bytesMax: Int = 2 << 20) {
        self.bytesMax = bytesMax
    }

    /// What is thrown is not kept.
    ///
    /// - Parameter place: where the text stands, when what it is read as depends on that.
    package func value(of text: String, at place: String = "", _ read: () throws -> Value) rethrows -> Value {
        let key = Key(place: place, text: text)
        if let value = known.withLock({ $0.values[key] }) { return value }
        let value = try read()
        if key.bytes <= bytesMax / 16 { keep(value, key) }
        return value
    }

    private func keep(_ value: Value, _ key: Key) {
        known.withLock { known in
            if known.bytes + key.bytes > bytesMax { known = Known() }
            if known.values.updateValue(value, forKey: key) == nil { known.bytes += key.bytes }
        }
    }
}
