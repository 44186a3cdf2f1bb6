import GRDB
import Store

/// An audience as SQL over the table `device`: the text is made of constants of ours, every value is a parameter.
struct AudienceCondition {
    var sql: String
    var arguments: [String: DatabaseValue]
}
