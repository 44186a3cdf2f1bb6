import Glibc

/// The header names a server looks for, each with its index: recognised by bytes, without a string per header.
package final class HeaderVocabulary: Sendable {
    private struct Word: Sendable {
        let index: Int
        let bytes: [UInt8]
    }

    private static let lengthMax = 63

    /// By length: few names share one.
    private let words: [[Word]]
    package let count: Int

    /// At most 64 names of at most 63 bytes, in lower case; the index of a name is its place in the list.
    package init(_ names: [String]) {
        precondition(names.count <= 64)
        var words = [[Word]](repeating: [], count: Self.lengthMax + 1)
        for (index, name) in names.enumerated() {
            words[name.utf8.count].append(Word(index: index, bytes: Array(name.utf8)))
        }
        self.words = words
        count = names.count
    }

    func index(of name: UnsafeRawBufferPointer) -> Int? {
        guard name.count <= Self.lengthMax, let start = name.baseAddress else { return nil }
        for word in words[name.count] where memcmp(word.bytes, start, name.count) == 0 { return word.index }
        return nil
    }
}
