import Model
import RelationalStore

/// The device fields that templates print, as further columns of a query.
struct FieldColumns {
    /// The keys of the attributes among the fields. They are passed as one array in one parameter.
    let keys: [String]
    private let fields: [AudienceField]

    init(_ fields: [AudienceField]) {
        self.fields = fields
        keys = fields.compactMap { field in
            if case .attribute(let key) = field { key } else { nil }
        }
    }

    /// Returns the columns, each with a comma in front.
    ///
    /// - Parameter parameter: the number of the parameter that holds ``keys``.
    func sql(parameter: Int) -> String {
        fields.map { field in
            ", "
                + DeviceColumn(.postgres).printed(field) { key in
                    "($\(parameter)::text[])[\((keys.firstIndex(of: key) ?? 0) + 1)]"
                }
        }.joined()
    }
}
