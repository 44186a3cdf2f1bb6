import Synchronization

/// A cache of parsed texts that are read repeatedly: the definition of a run in a list, the files behind a page. The
/// parser must always return the same value for the same text. A changed text is a different key, so no outdated value
/// is returned.
///
/// The cache holds at most ``bytesMax`` of text, and no text that is longer than a sixteenth of that. One lock guards
/// it. The lock is not held during parsing, so two tasks may parse the same text at the same time.
package final class TextMemo<Value: Sendable>: Sendable {
    /// The text by its bytes. Swift treats two ways to write "ü" as equal, but a comparison with values from devices
    /// does not.
    private struct Key: Hashable {
        let place: String
        let text: String
        /// The hash, which is computed before the lock is acquired.
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

    /// Returns the value of a text. Errors are not cached.
    ///
    /// - Parameter place: the location of the text, if the value depends on it.
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
