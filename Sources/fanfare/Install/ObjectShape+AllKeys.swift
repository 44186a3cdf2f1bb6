import CampaignFiles

extension ObjectShape {
    /// The keys of the object and of everything below it, with their paths. `apps[].topic` is a key of each element of
    /// the list `apps`, and `people.NAME` stands for each key of the author's choice.
    var allKeys: [(path: String, key: KeyShape)] {
        keys.flatMap { key in [(key.name, key)] + key.value.keysBelow(key.name) }
    }
}

extension ValueShape {
    fileprivate func keysBelow(_ path: String) -> [(path: String, key: KeyShape)] {
        switch self {
        case .object(let shape): shape.allKeys.map { ("\(path).\($0.path)", $0.key) }
        case .list(let element): element.keysBelow("\(path)[]")
        case .map(_, let value): value.keysBelow("\(path).NAME")
        case .either(let shapes): shapes.flatMap { $0.keysBelow(path) }
        case .text, .integer, .number, .boolean, .choice, .anything: []
        }
    }
}
