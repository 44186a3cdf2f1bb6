package import Logging
package import Model

// The facts of a log line by the keys of one enum, so that a key is spelt once.
extension Dictionary where Key == String, Value == Logger.MetadataValue {
    package static func facts(_ facts: [LogKey: Logger.MetadataValue]) -> Logger.Metadata {
        Dictionary(uniqueKeysWithValues: facts.map { ($0.key.rawValue, $0.value) })
    }

    package subscript(key: LogKey) -> Logger.MetadataValue? {
        get { self[key.rawValue] }
        set { self[key.rawValue] = newValue }
    }
}
